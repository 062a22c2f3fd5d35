# frozen_string_literal: true

require "pando/cluster/throttling/backoff"
require "pando/events"

module Pando
  module Cluster
    module Throttling
      # Keeps one place in the cluster (a slot, a service, the mold, the reactor) from being filled again and again at
      # full speed. A few deaths are made up for at once; who goes on dying is started again later each time.
      #
      # Owned by RestartThrottles.
      #
      # @api private
      class RestartThrottle
        extend Serializable

        serialize throttled: :flag, reason: :text, backoff: Backoff

        # Refusals in a row of which each has made the wait longer: what follows is no news.
        ENOUGH = Math.log2(Backoff::REFUSED / Backoff::FIRST).ceil
        private_constant :ENOUGH

        # @param place [Hash{Symbol => Object}] whose restarts they are, for events
        # @param limit [Float] seconds of the longest wait @param free [Integer] deaths that are made up for at once
        def initialize(place, limit:, free:)
          @place = place
          @backoff = Backoff.new(limit, free: free)
          @throttled = false
        end

        def over?(now = Sys.now) = @backoff.over?(now)
        def due = @backoff.due
        # @return [Integer] in a row
        def failures = @backoff.failures
        def refusals = @backoff.refusals
        def refused? = @backoff.refused?
        def succeed = @backoff.succeed

        # @param refused [Boolean] the kernel did not let it be started
        # @return [Float] seconds until the next try
        def fail(reason = nil, now = Sys.now, refused: false)
          waits = !@backoff.over?(now)
          known = @throttled && refused && @backoff.refusals > ENOUGH
          @reason = reason
          seconds = @backoff.fail(now, refused: refused)
          tell(seconds, now) if seconds.positive? && !waits && !known
          seconds
        end

        # Nothing has failed here, but so long the next try waits.
        def wait_until(time) = @backoff.wait_until(time)

        # Tells when all is quiet again.
        # @return [Boolean] whether it is
        def calm?(now = Sys.now)
          return false unless @backoff.calm?(now)

          Events.emit("restart.recovered", **@place) if @throttled
          @throttled = false
          true
        end

        # For `pando status`.
        # @return [Hash{Symbol => Object}]
        def state(now = Sys.now)
          { **@place, rate: @backoff.rate(now), seconds: ((@backoff.due || now) - now).round(2), reason: @reason }
        end

        private

        # A single failure has an event of its own.
        def tell(seconds, now)
          rate = @backoff.rate(now)
          return if rate < 2

          @throttled = true
          Events.emit("restart.throttled", **@place, rate: rate, seconds: seconds.round(2), reason: @reason)
        end
      end
    end
  end
end
