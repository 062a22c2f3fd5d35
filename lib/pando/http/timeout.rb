# frozen_string_literal: true

require "pando/errors"

module Pando
  module HTTP
    # `env["pando.timeout"]`: the deadline of one request, for the application to
    # look at and to move.
    #
    #     env["pando.timeout"].extend_by(60) if report?
    #
    # It only tells the worker's scoreboard row; the monitor watches the row and
    # signals, and {SoftTimeout} then interrupts. Used in the worker's main thread.
    # When the request is over it answers nil and changes nothing.
    class Timeout
      # @param worker [#job_deadline]
      # @param seconds [Float, nil] until RequestTimeout is raised; nil: never
      # @param grace [Float] seconds from then until the worker is killed
      # @param started [Float] when the request was, monotonic seconds
      # @param patience [Float, nil] seconds that a client may be waited for at a time
      # @api private
      def initialize(worker, seconds, grace, started = now, patience: nil)
        @worker = worker
        @grace = grace
        @longest_wait = patience && (patience + grace)
        @deadline = seconds && (started + seconds)
        @over = false
        @fired = false
        @suspended = false
      end

      # @return [Float, nil] seconds, negative when it has passed; nil if there is no deadline
      def remaining
        @deadline - now if @deadline && !@over
      end

      # Moves the deadline, and the kill behind it.
      #
      # @param seconds [Numeric] more than zero
      # @return [Float, nil] the seconds that remain now
      # @raise [ArgumentError]
      def extend_by(seconds)
        unless seconds.is_a?(Numeric) && seconds.real? && seconds.positive? && seconds.to_f.finite?
          raise ArgumentError, "extend_by wants a positive number of seconds, not #{seconds.inspect}"
        end
        return if @over || @deadline.nil?

        @deadline += seconds
        left = remaining
        @worker.job_deadline(left, left + @grace)
        left
      end

      # This request may take as long as it likes.
      #
      # @return [nil]
      def disable!
        return if @over

        @deadline = nil
        @worker.job_deadline(nil, nil)
        nil
      end

      # For logs of the environment: without the worker and all that hangs on it.
      def inspect = "#<#{self.class} remaining=#{remaining&.round(3).inspect}>"

      # @return [Boolean] whether RequestTimeout was raised
      # @api private
      def fired?
        @fired
      end

      # Stops the clock while the server waits for a client that takes the answer
      # slowly: that has a limit of its own, and says nothing about the application. A worker
      # that has not come back long after this limit has been stopped.
      #
      # @api private
      def suspend
        return yield if @over || @deadline.nil?

        @suspended = true
        left = remaining
        @worker.job_deadline(nil, @longest_wait)
        begin
          yield
        ensure
          @deadline = now + left
          @worker.job_deadline(left, left + @grace)
          @suspended = false
        end
      end

      # Raises in the main thread, once. Called in a trap handler.
      #
      # @param backtrace [Array<String>, nil] where the request is
      # @api private
      def fire(backtrace = nil)
        return if @fired || @over || @suspended

        @fired = true
        Thread.main.raise(RequestTimeout, "the request outlived its timeout", backtrace)
      end

      # @api private
      def finish
        @over = true
      end

      private

      def now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
