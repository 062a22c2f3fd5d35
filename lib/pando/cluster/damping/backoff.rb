# frozen_string_literal: true

require "pando/cluster/carried"

module Pando
  module Cluster
    module Damping
      # How long to wait before the next try: twice as long with each failure, up to a limit. What counts is how
      # often something fails, not how often it ever has: for each ten seconds without a failure, and without a
      # wait, one is forgotten. So one failure an hour is nothing, for ever, and ten in a minute are many.
      #
      # Owned by the monitor. A failure during a wait makes the next one longer, but not this one.
      #
      # @api private
      class Backoff
        extend Carried

        carry failures: :integer, level: :integer, until: :number, last: :number, times: :numbers

        FIRST = 0.25
        LIMIT = 30.0
        # Seconds without a failure for which one is forgotten.
        QUIET = 10.0
        # Failures beyond the free ones of which more make no difference.
        WORST = 8
        # What is remembered of single failures.
        MINUTE = 60.0
        REMEMBERED = 100

        # @return [Integer] in a row: since the last success
        attr_reader :failures

        # @param limit [Float] seconds of the longest wait
        # @param first [Float] seconds of the shortest one
        # @param free [Integer] failures after which nothing is waited for
        def initialize(limit = LIMIT, first: FIRST, free: 0)
          @limit = limit
          @first = first
          @free = free
          reset
        end

        def reset
          @failures = @level = 0
          @until = @last = 0.0
          @times = []
        end

        # It has worked once; that does not make up for all that has not.
        def succeed
          @failures = 0
        end

        # @param refused [Boolean] it could not even begin: that is never free
        # @return [Float] seconds until the next try
        def fail(now = Sys.now, refused: false)
          @level = [[level(now), (@free if refused)].compact.max, @free + WORST].min + 1
          @failures += 1
          @last = now
          @times = [*@times.last(REMEMBERED - 1), now]
          @until = now + delay if over?(now)
          @until - now
        end

        # @param time [Float] on Sys.now
        def wait_until(time)
          @until = [@until, time].max
        end

        def over?(now = Sys.now) = now >= @until

        # @return [Float, nil] when the wait ends, nil when there is none
        def due(now = Sys.now) = over?(now) ? nil : @until

        # @return [Integer] failures within the last minute
        def rate(now = Sys.now) = @times.count { |time| now - time < MINUTE }

        # @return [Boolean] whether all is forgotten
        def calm?(now = Sys.now) = level(now).zero? && over?(now)

        private

        # Failures that are not forgotten.
        def level(now)
          quiet = [now - [@last, @until].max, 0].max
          [@level - (quiet / QUIET).floor, 0].max
        end

        def delay
          count = @level - @free
          count.positive? ? [@first * (2**(count - 1)), @limit].min : 0.0
        end
      end
    end
  end
end
