# frozen_string_literal: true

require "pando/swarm/runners/solid_queue/life"

module Pando
  module Swarm
    module Runners
      class SolidQueue
        # Solid Queue's processes, each of which is a thread of a node here. They register with the node's pid and its
        # life mark, and leave no pipe behind.
        #
        # @api private
        module Member
          # @return [Hash] saved with the registration
          def metadata = super.merge(life: Life.mark)

          # Call it when nothing of this process runs any more.
          def close = self_pipe.each_value(&:close)
        end

        # @api private
        class Dispatcher < ::SolidQueue::Dispatcher
          include Member
        end

        # @api private
        class Scheduler < ::SolidQueue::Scheduler
          include Member
        end

        # A worker that can stop claiming jobs and keep its registration, so its jobs stay its own as long as they run.
        # Solid Queue's own stop would give them to others after five seconds.
        #
        # @api private
        class Worker < ::SolidQueue::Worker
          include Member

          # Seconds that it sleeps at a time when it claims no more jobs.
          PAUSE = 3600

          def initialize(...)
            @claims = Mutex.new # protects the following
            @quiet = @claiming = false
            super
          end

          # Returns at once. The worker still runs the jobs that it is just claiming.
          def quiet
            @claims.synchronize { @quiet = true }
          end

          # True from before a claim until everything about the job is recorded.
          # @return [Boolean]
          def busy? = @claims.synchronize { @claiming } || free < pool.size

          private

          # The step of Solid Queue's loop in which its kinds of processes differ.
          # @return [Numeric] seconds to sleep
          def poll
            claims = @claims.synchronize { @claiming = !@quiet }
            claims ? super : PAUSE
          ensure
            @claims.synchronize { @claiming = false }
          end

          # Before 1.5 this method had another name.
          def free = pool.respond_to?(:available_capacity) ? pool.available_capacity : pool.idle_threads
        end
      end
    end
  end
end
