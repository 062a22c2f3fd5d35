# frozen_string_literal: true

require "pando/http/timeout"

module Pando
  module HTTP
    # Turns the monitor's signal into RequestTimeout, while the application runs
    # and only then: the handler asks the scoreboard whether the deadline of the
    # running request has passed, for a signal may come late. One per worker.
    #
    # @api private
    class SoftTimeout
      SIGNAL = "URG"
      # Lines of the backtrace that is kept.
      FRAMES = 200

      # @param worker [#soft_deadline_passed?]
      def initialize(worker)
        @worker = worker
        @timeout = nil
      end

      # @return [self]
      def install
        trap(SIGNAL) { interrupt }
        self
      end

      # Runs the block as the part of a request that may be interrupted.
      #
      # @param timeout [Timeout]
      # @raise [RequestTimeout] at most once; possibly from the very end of this method
      def during(timeout)
        @timeout = timeout
        yield
      ensure
        @timeout = nil
      end

      private

      def interrupt
        timeout = @timeout
        # Without this method and the handler the backtrace begins where the request is.
        timeout.fire(caller(2, FRAMES)) if timeout && @worker.soft_deadline_passed?
      end
    end
  end
end
