# frozen_string_literal: true

require "pando/cluster/control/pool_snapshot"
require "pando/version"

module Pando
  module Cluster
    class Control
      # The cluster at this moment, as records: one of the server, one of each listener, pool (but for workers that
      # are alone), generation and process. What can be read from outside (memory, from /proc) is left to who asks.
      #
      # @api private
      class Snapshot
        ROLES = %i[reactor mold worker service].freeze
        # Of a pool.
        PARTS = %i[pool generations policy leak lost_threads changed_states refused_paths throttles].freeze

        def initialize(cluster)
          @cluster = cluster
          @pools = cluster.pools.map { |pool| PoolSnapshot.new(pool, (pool.name if named?(pool))) }
        end

        # @yieldparam word [String] @yieldparam pairs [Hash{Symbol => Object}]
        def each(&block)
          yield "server", server
          @cluster.listeners.waiting.each { |listen, waiting| yield "listener", listen: listen, waiting: waiting }
          queue = @cluster.reactors.state
          yield "queue", queue if queue
          PARTS.each { |part| @pools.flat_map(&part).each(&block) }
          yield "counts", counts if counts.any?
          processes.each(&block)
        end

        private

        # What serves requests goes without saying where there is nothing else.
        def named?(pool) = @cluster.pools.several? || pool.options.jobs

        def server
          { pid: Process.pid, version: Pando::VERSION, workers: @cluster.pools.workers,
            ready: @cluster.roster.ready_workers.size, state: state, uptime: @cluster.age.round(1),
            reforks: @pools.sum(&:reforks), sizing: @pools.first.sizing, failures: @pools.sum(&:failures),
            suspended: (true if @pools.any?(&:suspended?)), reloading: (true if @cluster.reload.under_way?),
            quiet: (true if @cluster.quiet.begun?) }
        end

        def state
          return "stopping" if @cluster.shutdown.begun?

          return "draining" if @cluster.drain.begun?

          @cluster.roster.ready_workers.any? ? "serving" : "booting"
        end

        def processes
          children = @cluster.roster.sort_by { |child| order(child) }
          children.map { |child| [child.role, @pools[child.pool].process(child)] }
        end

        # What has gone wrong since the start.
        def counts = @cluster.tally.counts.to_h { |name, number| [name.tr(".", "_").to_sym, number] }

        def order(child) = [ROLES.index(child.role), child.pool, child.slot, child.generation, child.seat]
      end
    end
  end
end
