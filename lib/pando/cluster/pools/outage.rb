# frozen_string_literal: true

require "pando/events"
require "pando/sys"

module Pando
  module Cluster
    class Pools
      # The time in which nobody serves: it is told once, and ends the server if it lasts too long and the user has
      # said so. How often something has been tried does not count.
      #
      # Owned by Pools, in the monitor.
      #
      # @api private
      class Outage
        # @param shutdown [Shutdown]
        def initialize(shutdown)
          @shutdown = shutdown
          @served_at = Sys.now
          @told = []
        end

        # Called at each turn of the monitor's loop.
        # @param serving [Array<Pool>] those in which somebody serves
        def look(serving)
          return if serving.empty?

          @served_at = Sys.now
          @begun = false
          @told -= serving
        end

        # What a pool lacks is told once, until somebody serves in it again.
        # @yield unless that has been done
        def tell(pool)
          yield unless @told.include?(pool)
          @told |= [pool]
        end

        # A try to have a worker has failed, and there is none.
        # @param detail [String, nil] a backtrace
        # @param limit [Float, nil] seconds; nil: it is borne for ever
        # @return [Boolean] whether the server stops
        def bear(reason, detail, limit)
          seconds = Sys.now - @served_at
          Events.emit("server.failing", reason: reason, **left(limit, seconds)) unless @begun
          @begun = true
          return false unless limit && seconds >= limit

          @shutdown.fail("nobody has served for #{seconds.floor} s (give_up after: #{format("%g", limit)}): #{reason}",
                         detail)
          true
        end

        private

        def left(limit, seconds) = limit ? { seconds: [limit - seconds, 0].max.round(1) } : {}
      end
    end
  end
end
