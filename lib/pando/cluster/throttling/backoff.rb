# frozen_string_literal: true

require "pando/cluster/serializable"

module Pando
  module Cluster
    module Throttling
      # How long to wait before the next try: twice as long with each failure, up to a limit. What counts is how
      # often something fails, not how often it ever has: for each ten seconds without a failure, and without a
      # wait, one is forgotten. So one failure an hour is nothing, for ever, and ten in a minute are many.
      #
      # What the kernel refuses is no failure: it is tried again soon, for ever, and makes no later wait longer.
      #
      # Owned by the monitor. A failure during a wait makes the next one longer, but not this one.
      #
      # @api private
      class Backoff
        extend Serializable

        serialize failures: :integer, refusals: :integer, level: :integer, until: :number, last: :number, times: :numbers

        FIRST = 0.25
        LIMIT = 30.0
        # Seconds of the longest wait for what the kernel refuses. A try costs next to nothing.
        REFUSED = 1.0
        # Seconds without a failure for which one is forgotten.
        QUIET = 10.0
        # Failures beyond the free ones of which more make no difference.
        WORST = 8
        # What is remembered of single failures.
        MINUTE = 60.0
        REMEMBERED = 100

        # @return [Integer] in a row: since the last success
        attr_reader :failures
        # @return [Integer] likewise
        attr_reader :refusals

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
          @failures = @refusals = @level = 0
          @until = @last = 0.0
          @times = []
        end

        # It has worked once; that does not make up for all that has not.
        def succeed
          @failures = @refusals = 0
        end

        # @param refused [Boolean] it could not even begin, which is nobody's fault; that is never free
        # @return [Float] seconds until the next try
        def fail(now = Sys.now, refused: false)
          @level = [level(now), @free + WORST].min
          @refusals = refusals_at(now)
          refused ? @refusals += 1 : blame
          @last = now
          @times = [*@times.last(REMEMBERED - 1), now]
          @until = now + (refused ? wait(@refusals, REFUSED) : delay) if over?(now)
          @until - now
        end

        # @return [Boolean] the last try could not even begin, or one not long before
        def refused? = @refusals.positive?

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
        def calm?(now = Sys.now) = level(now).zero? && refusals_at(now).zero? && over?(now)

        private

        def blame
          @level += 1
          @failures += 1
        end

        # Failures that are not forgotten.
        def level(now) = [@level - quiet_times(now), 0].max

        # One quiet time is enough: it was no fault.
        def refusals_at(now) = quiet_times(now).zero? ? @refusals : 0

        def quiet_times(now) = ([now - [@last, @until].max, 0].max / QUIET).floor

        def delay
          count = @level - @free
          count.positive? ? wait(count, @limit) : 0.0
        end

        def wait(count, limit) = [@first * (2**[count - 1, WORST].min), limit, @limit].min
      end
    end
  end
end
