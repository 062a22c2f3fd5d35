# frozen_string_literal: true

require "pando/cluster/throttling/backoff"

module Pando
  module Cluster
    module Memory
      # When a worker may be sent away because memory is short: one at a time, of whatever pool.
      #
      # Owned by the monitor; each pool's guard asks it.
      #
      # @api private
      class Relief
        # Seconds that the departure of the fattest is given to show. While nothing helps, twice as long each time.
        RESPITE = 2.0
        LONGEST_RESPITE = 120.0
        # Seconds between two departures where neither is waited for.
        LEAST = 0.025

        # @param shortage [Shortage]
        def initialize(shortage)
          @shortage = shortage
          @respite = Throttling::Backoff.new(LONGEST_RESPITE, first: RESPITE)
          @sent_at = 0.0
          @guards = []
        end

        # @param guard [Guard] of a pool
        def join(guard) = @guards << guard

        # @param guard [Guard] that asks
        # @return [Boolean]
        def allowed?(guard, now)
          return now - @sent_at >= LEAST if @shortage.critical?

          @respite.over?(now) && !guard.departing? && @guards.none?(&:seeing_off?)
        end

        # One has been sent away.
        def note(now)
          @sent_at = now
          @respite.fail(now)
        end

        # There is enough.
        def reset = @respite.reset
      end
    end
  end
end
