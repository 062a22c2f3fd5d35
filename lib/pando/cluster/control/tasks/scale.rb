# frozen_string_literal: true

module Pando
  module Cluster
    class Control
      module Tasks
        # Starts more workers, or ends some. It is over when all workers are ready and the surplus has left. If that
        # takes too long, it says why; the monitor keeps the number and goes on trying.
        class Scale < Task
          # Events about a worker that failed to start.
          FAILURES = %w[worker.failed fork.failed spawn.failed check.failed].freeze
          # After so many of them it waits no longer.
          TRIES = 3

          # @param pool [Pool] of which
          def initialize(cluster, pool, size)
            super(cluster)
            @pool = pool
            @name = (pool.name if cluster.pools.several?)
            @size = size
            @failures = 0
          end

          def start
            return if @cluster.pools.about(@pool) { @pool.rollout.resize(@size) }

            give_up("a cluster has 1 to #{Roster::SEATS / 4} workers")
          end

          def lasting? = true

          def check
            now = @pool.rollout.size
            return give_up("another command has asked for #{counted(now, "worker")} since") if now != @size
            return achieve(success) if workers.size == @size && workers.all?(&:ready?)

            give_up(missing("after #{timeout.round} s")) if Sys.now >= deadline
          end

          # @param event [Event]
          def observe(event)
            return unless event[:pool] == @name
            return give_up(unbootable(event[:reason])) if event.name == "pool.failing"
            return unless FAILURES.include?(event.name) && event[:slot]

            @failures += 1
            @reason = event[:reason]
            give_up(missing("after #{counted(@failures, "failure")}")) if @failures >= TRIES
          end

          # A worker ends its request before it leaves; without a mold there is nothing to fork workers from.
          def obstacle
            busy = workers.find { |worker| worker.leaving? && worker.job.any? }
            return ["#{title(busy)} #{engagement(busy)}", deadline - Sys.now] if busy

            @pool.generations.occupation unless @pool.generations.current&.forks?
          end

          private

          def workers = @pool.roster.workers

          # It starts again after an upgrade of the monitor.
          def deadline = @deadline ||= Sys.now + timeout

          # Seconds in which a worker starts, or ends its request and leaves.
          def timeout
            options = @pool.options
            options.spawn_timeout + options.stop_timeout + options.longest_request.to_f +
              (@pool.generations.current&.forks? ? 0.0 : options.boot_timeout)
          end

          def missing(since)
            ready, others = workers.partition { |worker| worker.ready? && worker.slot < @size }
            surplus = others.count { |worker| worker.slot >= @size }
            left = ", and #{counted(surplus, "worker")} still #{surplus == 1 ? "leaves" : "leave"}" if surplus.positive?
            ["#{ready.size} of #{@size} workers are ready #{since}#{left}", *@reason].join(": ")
          end

          def unbootable(reason)
            "#{@name} cannot be booted, and gets #{counted(@size, "worker")} when it can: #{reason}"
          end

          def success = [*@name, "#{counted(@size, "worker")} #{@size == 1 ? "is" : "are"} ready"].join(": ")
        end
      end
    end
  end
end
