# frozen_string_literal: true

require "pando/cluster/backoff"

module Pando
  module Cluster
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
