# frozen_string_literal: true

require "sidekiq/scheduled"

module Pando
  module Swarm
    module Runners
      class Sidekiq
        # Sidekiq's own scheduler, which can also tell whether its thread has died. The thread dies if Redis is down
        # when it looks for dead processes, some seconds after its start (7.0 to 8.1). Thread names cannot tell that: a
        # new thread has none yet, and other libraries' pollers have the same.
        #
        # One at a time in a run. The Engine and the Beat make it.
        class Scheduler < ::Sidekiq::Scheduled::Poller
          # @return [Thread]
          def start = @running = super

          def dead? = !@running.nil? && !@running.alive?
        end
      end
    end
  end
end
