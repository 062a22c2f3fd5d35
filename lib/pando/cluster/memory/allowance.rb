# frozen_string_literal: true

module Pando
  module Cluster
    module Memory
      # What may be spent on measuring where nobody waits for it: a thousandth of a CPU in the long run. What was not
      # spent is saved up, so that a new generation can be measured at once.
      #
      # Owned by the monitor.
      #
      # @api private
      class Allowance
        # Of one CPU.
        SHARE = 0.001
        # Seconds of CPU that are saved up at most, and that there are at first.
        SAVED = 0.05

        def initialize(now = Sys.now)
          @left = SAVED
          @filled_at = now
        end

        # @return [Boolean]
        def left?(now = Sys.now)
          @left = [@left + ((now - @filled_at) * SHARE), SAVED].min
          @filled_at = now
          @left.positive?
        end

        # @param seconds [Float] of CPU
        def spend(seconds) = @left -= seconds
      end
    end
  end
end
