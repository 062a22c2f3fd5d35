# frozen_string_literal: true

module Pando
  autoload :Exporters, "pando/exporters"

  # The role of the running process in the server that it belongs to.
  class << self
    # @return [Cluster::Role, nil] nil outside a server
    # @api private
    attr_accessor :current_role

    # @return [Boolean] whether this process has loaded its application in order to serve it: false in a console, a task
    #   or a test
    def serving? = @serving || false

    # @api private
    attr_writer :serving

    # For log tags. The result may change during the life of a process.
    #
    #     config.log_tags = [:request_id, ->(_request) { Pando.worker_tag }]
    #
    # @return [String, nil] "worker 2 gen 5"; nil outside a server
    def worker_tag
      role = current_role or return
      "#{role.role} #{role.slot} gen #{role.generation}"
    end

    # The workers of the pool that this process belongs to, in the shape of Puma's statistics, for code and libraries
    # that read those. It reads shared memory, and waits for no other process.
    #
    #     Pando.stats_hash[:worker_status].sum { |worker| worker[:last_status][:pool_capacity] }
    #
    # @return [Hash{Symbol => Object}, nil] see docs/metrics.md; nil outside a server
    def stats_hash
      role = current_role or return
      Cluster::Stats.new(role.context.scoreboard, role.row.pool, jobs: role.options.jobs).to_h
    end

    # @return [String, nil] {stats_hash} as JSON
    def stats
      figures = stats_hash or return
      require "json"
      JSON.generate(figures)
    end
  end
end
