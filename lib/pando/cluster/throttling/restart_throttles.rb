# frozen_string_literal: true

require "pando/cluster/throttling/restart_throttle"

module Pando
  module Cluster
    module Throttling
      # The throttles of all places that have seen a death lately.
      #
      # Owned by the monitor.
      #
      # @api private
      class RestartThrottles
        # Of each role: the longest wait, in seconds, and the deaths that are made up for at once. Whoever else serves
        # can do without one service for a while; without a reactor nobody is served, and without a mold no other death
        # is mended. What never comes up at all is Generations' business, which waits longer.
        LIMITS = { worker: { limit: 2.0, free: 3 }, mold: { limit: 2.0, free: 3 },
                    reactor: { limit: 1.0, free: 3 }, service: { limit: 30.0, free: 1 } }.freeze

        # Seconds from one who was ready to its successor, where it has died at its work.
        PACE = 0.5

        def initialize
          @throttles = {}
        end

        # @param role [Symbol] @param place [Hash{Symbol => Object}] which of them, if there are several
        # @return [Boolean] whether it may be started now
        def over?(role, **place) = @throttles[[role, place]].nil? || @throttles[[role, place]].over?

        # It has died, and nobody wanted it to; or the kernel did not let it be started.
        # @return [Float] seconds until it may be
        def fail(role, reason, refused: false, **place)
          @throttles[[role, place]] ||= RestartThrottle.new({ role: role, **place }, **LIMITS.fetch(role))
          @throttles[[role, place]].fail(reason, refused: refused)
        end

        # It has died at its work: what ended it came from outside, and those who wait are not to wait for that too.
        # @param since [Float] on Sys.now: when it was ready
        def pace(role, since, **place)
          @throttles[[role, place]] ||= RestartThrottle.new({ role: role, **place }, **LIMITS.fetch(role))
          @throttles[[role, place]].wait_until(since + PACE)
        end

        # @param state [Upgrade::State]
        def to_state(state)
          @throttles.each { |(role, place), throttle| state.add("throttle", role: role, **place, **throttle.serialized_fields) }
        end

        def from_state(state)
          state.all("throttle").each do |record|
            role = record.choice(:role, LIMITS.keys)
            place = { slot: record.read(:slot, :integer), name: record.read(:name, :text) }.compact
            @throttles[[role, place]] = RestartThrottle.new({ role: role, **place }, **LIMITS.fetch(role)).take_up(record)
          end
        end

        # Called at each turn of the monitor's loop.
        def reconcile(now = Sys.now)
          @throttles.reject! { |_, throttle| throttle.calm?(now) }
        end

        # @return [Float, nil] when the next one may be started
        def due = @throttles.each_value.filter_map(&:due).min

        # For `pando status`: where something has failed, not where the next start merely keeps its pace.
        # @return [Array<Hash{Symbol => Object}>]
        def states = @throttles.each_value.map(&:state).reject { |state| state[:rate].zero? }
      end
    end
  end
end
