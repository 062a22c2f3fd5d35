# frozen_string_literal: true

require "pando/http/errors"
require "pando/sys"

module Pando
  module HTTP
    # Limits how long one worker waits for one client, in one direction. Only the time spent waiting counts, so that a
    # slow application costs its client nothing.
    #
    # A single pause may last `pause` seconds. So may all pauses together, plus the time that the moved bytes earn at
    # `rate`: without this sum, one byte now and then would hold a worker for ever. At most {WINDOW} seconds are earned
    # in advance, so that a fast beginning does not pay for a slow end. Owned by a client, a reader or a body.
    class Pace
      # Bytes per second below which a client is too slow.
      SLOWEST = 1024.0
      # Seconds; the reactor's is the same (ext/pando/http/reactor_timers.c).
      WINDOW = 10.0

      # @param rate [Float] bytes per second that a client must reach
      def initialize(pause, rate: SLOWEST)
        @pause = pause
        @rate = rate
        restart
      end

      def restart
        @ahead = 0.0
        self
      end

      def moved(bytes)
        @ahead = [@ahead + (bytes / @rate), WINDOW].min
      end

      # @yieldreturn [Object] false or nil if nothing happened
      def wait
        allowance = [@pause, @pause + @ahead].min
        raise ClientTooSlow, "the client was too slow" if allowance <= 0

        before = Sys.now
        happened = yield allowance
        @ahead -= Sys.now - before
        raise ClientTooSlow, "the client was too slow" unless happened
      end
    end
  end
end
