# frozen_string_literal: true

module Pando
  module Cluster
    module Memory
      # What may be spent on measuring where nobody waits for it: a thousandth of a CPU in the long run. What a new
      # generation has is measured at once all the same: that is owed, and made up for later.
      #
      # Owned by the monitor.
      #
      # @api private
      class Allowance
        # Of one CPU.
        SHARE = 0.001
        # Seconds of CPU that are saved up at most, and that there are at first.
        SAVED = 0.05
        # And that may be owed.
        OWED = 1.0

        def initialize(now = Sys.now)
          @left = SAVED
          @filled_at = now
        end

        # @param urgent [Boolean] whether it may be owed
        # @return [Boolean]
        def left?(now = Sys.now, urgent: false)
          @left = [@left + ((now - @filled_at) * SHARE), SAVED].min
          @filled_at = now
          @left > (urgent ? -OWED : 0)
        end

        # @param seconds [Float] of CPU
        def spend(seconds) = @left -= seconds
      end
    end
  end
end
