# frozen_string_literal: true

require "pando/swarm/runners/solid_queue/life"

module Pando
  module Swarm
    module Runners
      class SolidQueue
        # What Solid Queue calls processes, each a thread of a node here: they register themselves with the node's pid
        # and the mark of its life, and leave no pipe behind.
        #
        # @api private
        module Member
          # @return [Hash] it is kept beside the registration
          def metadata = super.merge(life: Life.mark)

          # Once nothing of it runs any more.
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

        # A worker that can stop claiming and keep its registration: its jobs are its own as long as they run. Solid
        # Queue's own way to stop would give them to others after five seconds.
        #
        # @api private
        class Worker < ::SolidQueue::Worker
          include Member

          # Seconds that it sleeps at a time when it takes nothing more.
          PAUSE = 3600

          def initialize(...)
            @claims = Mutex.new # of those below
            @quiet = @claiming = false
            super
          end

          # Returns at once; what it is just claiming it will do.
          def quiet
            @claims.synchronize { @quiet = true }
          end

          # From before the claim until all of a job is written down.
          # @return [Boolean]
          def busy? = @claims.synchronize { @claiming } || free < pool.size

          private

          # The step of Solid Queue's loop that its kinds of processes differ in.
          # @return [Numeric] seconds to sleep
          def poll
            claims = @claims.synchronize { @claiming = !@quiet }
            claims ? super : PAUSE
          ensure
            @claims.synchronize { @claiming = false }
          end

          # Before 1.5 it was called otherwise.
          def free = pool.respond_to?(:available_capacity) ? pool.available_capacity : pool.idle_threads
        end
      end
    end
  end
end
