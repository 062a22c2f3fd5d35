# frozen_string_literal: true

require "pando/counted"
require "pando/cluster/control/task"

module Pando
  module Cluster
    class Control
      module Tasks
        # More workers, or fewer.
        class Scale < Task
          include Counted

          # @param pool [Pool] of which
          def initialize(cluster, pool, size)
            super(cluster)
            @pool = pool
            @name = (pool.name if cluster.pools.several?)
            @size = size
          end

          def start
            return if @cluster.pools.about(@pool) { @pool.rollout.resize(@size) }

            give_up("a cluster has 1 to #{Roster::SEATS / 4} workers")
          end

          def lasting? = true

          def check
            now = @pool.rollout.size
            return give_up("somebody has asked for #{counted(now, "worker")} since") if now != @size

            workers = @pool.roster.workers
            achieve(words) if workers.size == @size && workers.all?(&:ready?)
          end

          # Who can never boot is not waited for.
          def observe(event)
            return unless event.name == "pool.failing" && event[:pool] == @name

            give_up("#{@name} cannot be booted, and is to have #{counted(@size, "worker")} when it can: " \
                    "#{event[:reason]}")
          end

          private

          def words = [*@name, "#{counted(@size, "worker")} #{@size == 1 ? "is" : "are"} ready"].join(": ")
        end
      end
    end
  end
end
