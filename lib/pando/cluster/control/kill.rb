# frozen_string_literal: true

require "pando/cluster/control/tasks"

module Pando
  module Cluster
    class Control
      module Tasks
        # Kills a worker because an operator wants it (`pando kill`). It is over when the worker is dead; the monitor
        # replaces it as it does any worker that dies.
        class Kill < Task
          # @param worker [Child] that has a process
          def initialize(cluster, pool, worker)
            super(cluster)
            @pool = pool
            @worker = worker
            @pid = worker.pid
          end

          def start = @worker.kill(Child::BY_OPERATOR)

          def observe(event)
            return unless event[:pid] == @pid && %w[worker.killed worker.lost worker.failed].include?(event.name)

            at = ", at #{event[:request]}" if event[:request]
            achieve("#{title(@worker)} (pid #{@pid}) was killed#{at}; another one takes its place")
          end
        end
      end
    end
  end
end
