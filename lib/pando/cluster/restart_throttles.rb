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

    # Throttles restarts in one place of the cluster (a slot, a service, the mold, the reactor). The first few deaths
    # are replaced at once; a process that goes on dying is restarted later each time. Owned by RestartThrottles.
    class RestartThrottle < Backoff
      serialize throttled: :flag, reason: :text, **Backoff.serialized

      # After so many refusals in a row the wait grows no longer, and no further event is emitted.
      ENOUGH = Math.log2(REFUSED / FIRST).ceil
      private_constant :ENOUGH

      def initialize(place, limit:, free:)
        super(limit, free: free)
        @place = place
        @throttled = false
      end

      def fail(reason = nil, now = Sys.now, refused: false)
        waits = !over?(now)
        known = @throttled && refused && refusals > ENOUGH
        @reason = reason
        seconds = super(now, refused: refused)
        tell(seconds, now) if seconds.positive? && !waits && !known
        seconds
      end

      # Emits an event when the place has recovered.
      # @return [Boolean] whether it has
      def settle(now = Sys.now)
        return false unless calm?(now)

        Events.emit("restart.recovered", **@place) if @throttled
        @throttled = false
        true
      end

      def state(now = Sys.now)
        { **@place, rate: rate(now), seconds: ((due || now) - now).round(2), reason: @reason }
      end

      private

      # A single failure already has an event.
      def tell(seconds, now)
        return if rate(now) < 2

        @throttled = true
        Events.emit("restart.throttled", **@place, rate: rate(now), seconds: seconds.round(2), reason: @reason)
      end
    end

    # The throttles of all places where a process has died lately. Owned by a Pool, in the monitor.
    class RestartThrottles
      # For each role: the longest wait, in seconds, and the deaths that are replaced at once. The server can do without
      # one service for a while. Without a reactor it serves no requests, and without a mold it can replace nothing
      # else. A process that never becomes ready is a matter for Generations, which waits longer.
      LIMITS = { worker: { limit: 2.0, free: 3 }, mold: { limit: 2.0, free: 3 },
                 reactor: { limit: 1.0, free: 3 }, service: { limit: 30.0, free: 1 } }.freeze

      # Seconds from the readiness of a worker that died at its work to the start of its successor.
      PACE = 0.5

      def initialize
        @throttles = Hash.new do |throttles, (role, place)|
          throttles[[role, place]] = RestartThrottle.new({ role: role, **place }, **LIMITS.fetch(role))
        end
      end

      def over?(role, **place) = !@throttles.key?([role, place]) || @throttles[[role, place]].over?

      # The process died unexpectedly, or the kernel refused to start it.
      def fail(role, reason, refused: false, **place) = @throttles[[role, place]].fail(reason, refused: refused)

      # It died at its work. The cause came from outside, and waiting clients must not suffer for it.
      # @param since [Float] on Sys.now: when it was ready
      def pace(role, since, **place) = @throttles[[role, place]].wait_until(since + PACE)

      def to_state(state)
        @throttles.each do |(role, place), throttle|
          state.add("throttle", role: role, **place, **throttle.serialized_fields)
        end
      end

      def from_state(state)
        state.all("throttle").each do |record|
          place = { slot: record.read(:slot, :integer), name: record.read(:name, :text) }.compact
          @throttles[[record.choice(:role, LIMITS.keys), place]].take_up(record)
        end
      end

      def reconcile(now = Sys.now) = @throttles.reject! { |_, throttle| throttle.settle(now) }

      def due = @throttles.each_value.filter_map(&:due).min

      # For `pando status`: places with failures, not those where the next start merely keeps its pace.
      def states = @throttles.each_value.map(&:state).reject { |state| state[:rate].zero? }
    end
  end
end
