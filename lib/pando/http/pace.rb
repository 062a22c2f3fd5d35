# frozen_string_literal: true

module Pando
  module HTTP
    # How long one worker waits for one client, in one direction. Only the time
    # spent waiting counts, so that a slow application costs its client nothing.
    #
    # A single pause may last `pause` seconds; all pauses together that long too,
    # plus, where a rate is given, what the bytes moved earn at that rate. Without
    # the sum, one byte now and then would hold a worker for ever. What is earned in
    # advance is {WINDOW} seconds at most: a fast beginning pays for no slow end.
    #
    # @api private
    class Pace
      # Bytes per second below which a client only holds the worker up.
      SLOWEST = 1024.0
      # Seconds; the reactor's is the same (ext/pando/http/reactor_timers.c).
      WINDOW = 10.0

      # @param pause [Float] seconds
      # @param rate [Float] bytes per second that keep the client welcome
      def initialize(pause, rate: SLOWEST)
        @pause = pause
        @rate = rate
        restart
      end

      # @return [self] for another transfer
      def restart
        @ahead = 0.0
        self
      end

      # @param bytes [Integer] that the client has sent or taken
      def moved(bytes)
        @ahead = [@ahead + (bytes / @rate), WINDOW].min
      end

      # @yieldparam seconds [Float] how long to wait at most
      # @yieldreturn [Object] false or nil if nothing happened
      # @raise [ClientTooSlow]
      def wait
        allowance = [@pause, @pause + @ahead].min
        raise ClientTooSlow, "the client was too slow" if allowance <= 0

        before = now
        happened = yield allowance
        @ahead -= now - before
        raise ClientTooSlow, "the client was too slow" unless happened
      end

      private

      def now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
