# frozen_string_literal: true

module Pando
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
  end
end
