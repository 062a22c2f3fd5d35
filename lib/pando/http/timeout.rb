# frozen_string_literal: true

require "pando/errors"

module Pando
  module HTTP
    # `env["pando.timeout"]`: the deadline of one request, for the application to
    # look at and to move.
    #
    #     env["pando.timeout"].extend_by(60) if report?
    #
    # It writes to the worker's scoreboard row only; the monitor watches the row and
    # signals, and {SoftTimeout} then interrupts. Used in the worker's main thread.
    # When the request is over it answers nil and changes nothing.
    class Timeout
      MESSAGE = "the request outlived its timeout"
      private_constant :MESSAGE

      # @param worker [#job_deadline, #job_streams]
      # @param seconds [Float, nil] until RequestTimeout is raised; nil: never
      # @param grace [Float] seconds from then until the worker is killed
      # @param started [Float] when the request was, monotonic seconds
      # @param patience [Float, nil] seconds that a client may be waited for at a time
      # @param streaming [Float, nil] seconds from the head of the answer to its end; nil: for ever
      # @api private
      def initialize(worker, seconds, grace, started = now, patience: nil, streaming: nil)
        @worker = worker
        @grace = grace
        @longest_wait = patience && (patience + grace)
        @deadline = seconds && (started + seconds)
        @streaming = streaming
        @over = @disabled = @suspended = @answering = @handled = false
        @fired = nil
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

        @disabled = true
        @deadline = nil
        @worker.job_deadline(nil, nil)
        nil
      end

      # The application has rescued RequestTimeout and answers in a way of its own: its answer is
      # sent instead of 504, if it comes within the grace. The worker is replaced all the same.
      #
      # @return [Boolean] false if RequestTimeout was not raised
      def handled!
        return false if @over || @fired.nil?

        @handled = true
      end

      # For logs of the environment: without the worker and all that hangs on it.
      def inspect = "#<#{self.class} remaining=#{remaining&.round(3).inspect}>"

      # @return [Boolean] whether RequestTimeout was raised
      # @api private
      def fired? = !@fired.nil?

      # @return [Boolean] whether it was raised, and the application has not declared its answer to be good
      # @api private
      def exceeded? = !@fired.nil? && !@handled

      # Before the head of the application's answer is sent.
      #
      # @raise [RequestTimeout] it comes too late
      # @api private
      def check
        raise error if exceeded?
      end

      # The head of the answer is out: from here on a time of its own counts, or none.
      #
      # @api private
      def answering
        return if @answering || @over

        @answering = true
        @worker.job_streams
        return if @disabled || (@deadline.nil? && @streaming.nil?)

        @deadline = @streaming && (now + @streaming)
        @worker.job_deadline(@streaming, @streaming && (@streaming + @grace))
      end

      # @param other [Exception, nil] what the application raised in its place; nil: it answered
      # @return [RequestTimeout] with the backtrace of the moment when it was raised in the application
      # @api private
      def error(other = nil)
        RequestTimeout.new([MESSAGE, *outcome(other)].join("; ")).tap { |error| error.set_backtrace(@fired) }
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

        @fired = backtrace || []
        Thread.main.raise(RequestTimeout, MESSAGE, backtrace)
      end

      # @api private
      def finish
        @over = true
      end

      private

      # A framework may rescue every exception, as Rails does: that is no fault of the application's.
      # @return [String, nil] what has become of the exception in the application
      def outcome(other)
        return "it became #{other.class}: #{other.message}" if other
        return "the application's own answer was sent (handled!)" if @handled

        "the answer that the application or its framework made of it was not sent" unless @answering
      end

      def now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
