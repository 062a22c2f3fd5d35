# frozen_string_literal: true

module Pando
  module Cluster
    # The time to wait before the next try. It doubles with each failure, up to a limit. The rate of failures counts,
    # not their total: each ten seconds without a failure and without a wait forget one. So one failure an hour never
    # adds up, and ten in a minute do.
    #
    # A refusal by the kernel is no failure. It is tried again soon, without end, and makes no later wait longer. A
    # failure during a wait makes the next wait longer, but not this one. Used in the monitor.
    class Backoff
      extend Serializable

      serialize failures: :integer, refusals: :integer, level: :integer, until: :number, last: :number, times: :numbers

      FIRST = 0.25
      LIMIT = 30.0
      # Seconds of the longest wait after a refusal by the kernel. A try costs next to nothing.
      REFUSED = 1.0
      # Seconds without a failure after which one is forgotten.
      QUIET = 10.0
      # More failures than this, beyond the free ones, make no difference.
      WORST = 8
      # Single failures are remembered for so many seconds, and at most so many of them.
      MINUTE = 60.0
      REMEMBERED = 100

      # In a row: since the last success.
      attr_reader :failures, :refusals

      # @param free [Integer] failures that cause no wait
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

      # A try has worked. The level stays: one success does not make up for many failures.
      def succeed = @failures = @refusals = 0

      # @param refused [Boolean] the kernel refused it; that is never free
      def fail(now = Sys.now, refused: false)
        @level = [level(now) + (refused ? 0 : 1), @free + WORST].min
        @failures += 1 unless refused
        @refusals = refusals_at(now) + (refused ? 1 : 0)
        @last = now
        @times = [*@times.last(REMEMBERED - 1), now]
        @until = now + (refused ? wait(@refusals, REFUSED) : wait(@level - @free, @limit)) if over?(now)
        @until - now
      end

      # Whether the kernel refused the last try, or one shortly before.
      def refused? = @refusals.positive?

      def wait_until(time) = @until = [@until, time].max

      def over?(now = Sys.now) = now >= @until

      def due(now = Sys.now) = over?(now) ? nil : @until

      def rate(now = Sys.now) = @times.count { |time| now - time < MINUTE }

      def calm?(now = Sys.now) = level(now).zero? && refusals_at(now).zero? && over?(now)

      private

      # Failures that are not forgotten yet.
      def level(now) = [@level - quiet_periods(now), 0].max

      # One quiet period forgets all refusals.
      def refusals_at(now) = quiet_periods(now).zero? ? @refusals : 0

      def quiet_periods(now) = ([now - [@last, @until].max, 0].max / QUIET).floor

      def wait(count, limit) = count.positive? ? [@first * (2**[count - 1, WORST].min), limit, @limit].min : 0.0
    end
  end
end
