# frozen_string_literal: true

require "sidekiq/scheduled"

module Pando
  module Swarm
    module Runners
      class Sidekiq
        # Sidekiq's own scheduler, of which we know whether its thread has ended: it dies if Redis is away when it looks
        # for dead processes, some seconds after its start (7.0 to 8.1). The names of threads do not tell: a new one has
        # none yet, and other libraries' pollers have the same.
        #
        # One at a time in a run, made by the Engine and by the Beat.
        class Scheduler < ::Sidekiq::Scheduled::Poller
          # @return [Thread]
          def start = @running = super

          def dead? = !@running.nil? && !@running.alive?
        end
      end
    end
  end
end
