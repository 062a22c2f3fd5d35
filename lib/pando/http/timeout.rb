# frozen_string_literal: true

require "pando/errors"
require "pando/sys"

module Pando
  module HTTP
    # `env["pando.timeout"]`: the deadline of one request. The application can read it and move it.
    #
    #     env["pando.timeout"].extend_by(60) if report?
    #
    # It writes to the worker's scoreboard row. The monitor watches the row and sends a signal, by which {SoftTimeout}
    # interrupts. Used in the request's thread. After the request it returns nil and changes nothing.
    #
    # @api public
    class Timeout
      MESSAGE = "the request outlived its timeout"
      private_constant :MESSAGE

      # @param record [Cluster::JobRecord] of the request
      # @param seconds [Float, nil] until RequestTimeout is raised; nil: never
      # @param grace [Float] seconds from then until the worker is killed
      # @param started [Float] when the request was, monotonic seconds
      # @param patience [Float, nil] longest wait for a client, seconds
      # @param streaming [Float, nil] seconds from the head of the answer to its end; nil: for ever
      # @param env [Hash, nil] of the request, for the slow log
      # @api private
      def initialize(record, seconds, grace, started = Sys.now, patience: nil, streaming: nil, env: nil)
        @env = env
        @slow = nil
        @record = record
        @thread = Thread.current
        @seconds = seconds
        @grace = grace
        @longest_wait = patience && (patience + grace)
        @deadline = seconds && (started + seconds)
        @streaming = streaming
        @over = @disabled = @suspended = @answering = @answered = @handled = false
        @fired = nil
      end

      # @return [Float, nil] seconds, negative when it has passed; nil if there is no deadline
      def remaining
        @deadline - Sys.now if @deadline && !@over
      end

      # Moves the deadline, and the kill behind it.
      #
      # @param seconds [Numeric] more than zero
      # @return [Float, nil] the seconds that remain now
      # @raise [ArgumentError]
      def extend_by(seconds)
        unless seconds.is_a?(Numeric) && seconds.real? && seconds.positive? && seconds.to_f.finite?
          raise ArgumentError, "extend_by needs a positive number of seconds, not #{seconds.inspect}"
        end
        return if @over || @deadline.nil?

        @deadline += seconds
        left = remaining
        @record.job_deadline(left, left + @grace)
        left
      end

      # This request may take as long as it likes.
      #
      # @return [nil]
      def disable!
        return if @over

        @disabled = true
        @deadline = nil
        @record.job_deadline(nil, nil)
        nil
      end

      # The application has rescued RequestTimeout and answers by itself: its answer is sent instead of 504, if it comes
      # within the grace. The worker is replaced all the same.
      #
      # @return [Boolean] false if RequestTimeout was not raised
      def handled!
        return false if @over || @fired.nil?

        @handled = true
      end

      # For logs of the environment: without the worker and all that it refers to.
      def inspect = "#<#{self.class} remaining=#{remaining&.round(3).inspect}>"

      # @!group The server's own: no part of the public API

      # @return [Boolean] whether RequestTimeout was raised
      def fired? = !@fired.nil?

      # @return [Boolean] whether it was raised, and {#handled!} was not called
      def exceeded? = !@fired.nil? && !@handled

      # Before the head of the application's answer is sent.
      #
      # @raise [RequestTimeout] it comes too late
      def check
        raise error if exceeded?
      end

      # The head of the answer was sent: from here on `timeout_streaming` counts.
      def answering
        return if @answering || @over

        @answering = true
        @record.job_streams
        return if @disabled || (@deadline.nil? && @streaming.nil?)

        @deadline = @streaming && (Sys.now + @streaming)
        @record.job_deadline(@streaming, @streaming && (@streaming + @grace))
      end

      # The answer is sent. What the application still has to do has as much time as the request had. Without a deadline
      # it is no reason to keep a worker that is to leave. After a timeout the state of the application is unknown, and
      # the kill remains.
      def begin_anew
        return if @fired || @over

        @answered = true
        had = @deadline
        @deadline = (Sys.now + @seconds if @seconds && !@disabled)
        return @record.job_deadline(@seconds, @seconds + @grace) if @deadline

        @record.job_streams
        @record.job_deadline(nil, nil) if had
      end

      # @param other [Exception, nil] what the application raised in its place; nil: it answered
      # @return [RequestTimeout] with the backtrace of the moment when it was raised in the application
      def error(other = nil)
        RequestTimeout.new([MESSAGE, *outcome(other)].join("; ")).tap { |error| error.set_backtrace(@fired) }
      end

      # Stops the clock while the server waits for a slow client: that has a limit of its own, and is not the
      # application's fault. A worker that has not come back long after this limit was stopped by somebody.
      def suspend
        return yield if @over || @deadline.nil?

        @suspended = true
        left = remaining
        @record.job_deadline(nil, @longest_wait)
        begin
          yield
        ensure
          @deadline = Sys.now + left
          @record.job_deadline(left, left + @grace)
          @suspended = false
        end
      end

      # Raises in the request's thread, once. Called by {SoftTimeout}, in the main thread.
      #
      # @param backtrace [Array<String>, nil] where the request is
      def fire(backtrace = nil)
        return if @fired || @over || @suspended

        @fired = backtrace || []
        @thread.raise(RequestTimeout, MESSAGE, backtrace)
      end

      def finish
        @over = true
      end

      # @return [Hash, nil] the environment of the request
      attr_reader :env
      # @return [SlowLog, nil] nil: it has no entry of this request
      attr_accessor :slow

      # @return [Array<String>, nil] where the request is, with all frames
      def stack = @thread.backtrace

      # @return [Array<String>, nil] where the request is
      def backtrace = @thread.backtrace(0, SoftTimeout::FRAMES)

      private

      # A framework such as Rails may rescue every exception.
      # @return [String, nil] what has become of the exception in the application
      def outcome(other)
        return "it was at work after its response" if @answered
        return "it became #{other.class}: #{other.message}" if other
        return "the application's own response was sent (handled!)" if @handled

        "the response that the application or its framework made of it was not sent" unless @answering
      end
    end

    # Turns the monitor's signal into RequestTimeout, only while the application runs. The handler asks the scoreboard
    # whether the deadline of the running request has passed, because a signal may come late. One per worker, unless
    # it is not installed and never interrupts (NoWorker). For requests on the main thread, where the handler runs
    # between two instructions of the request.
    class SoftTimeout
      SIGNAL = "URG"
      # Lines of the backtrace that is kept.
      FRAMES = 200

      # @return [Cluster::JobRecord]
      attr_reader :record

      # @param record [Cluster::JobRecord]
      # @param slow [SlowLog, nil]
      def initialize(record, slow = nil)
        @record = record
        @slow = slow
        @timeout = nil
      end

      # @return [self]
      def install
        trap(SIGNAL) { interrupt }
        self
      end

      # Runs the block which may be interrupted.
      #
      # @param timeout [Timeout]
      # @raise [RequestTimeout] at most once; possibly from the very end of this method
      def during(timeout)
        @timeout = timeout
        yield
      ensure
        @timeout = nil
      end

      # In the handler of the signal.
      def interrupt
        timeout = @timeout
        @slow.tell(timeout, caller(2)) if @slow&.due?
        # Without this method and the handler the backtrace begins where the request is.
        timeout.fire(caller(2, FRAMES)) if timeout && @record.soft_deadline_passed?
      end
    end

    # The same for requests on another thread. That thread runs on while the main thread looks at the deadline, and Ruby
    # delivers the exception some time later. So the thread accepts it only within {#during}, and what comes too late
    # for one request must not hit the next.
    class ThreadTimeout < SoftTimeout
      # Ruby copies other hashes at each call.
      NEVER = { RequestTimeout => :never }.compare_by_identity.freeze
      IMMEDIATE = { RequestTimeout => :immediate }.compare_by_identity.freeze
      private_constant :NEVER, :IMMEDIATE

      def initialize(record, slow = nil)
        super
        @lock = Mutex.new
      end

      # Runs the block of a thread that is interrupted nowhere but in {#during}.
      def self.defer(&block) = Thread.handle_interrupt(NEVER, &block)

      # (see SoftTimeout#during)
      def during(timeout, &)
        @timeout = timeout
        Thread.handle_interrupt(IMMEDIATE, &)
      ensure
        @lock.synchronize { @timeout = nil }
        absorb if timeout.fired? && Thread.pending_interrupt?(RequestTimeout)
      end

      # For a request that the main thread serves: in the handler of the signal, which can take no lock and needs none.
      alias interrupt_here interrupt

      # In the main thread, after the signal and not in its handler.
      def interrupt
        tell_slow if @slow&.due?
        @lock.synchronize do
          timeout = @timeout
          timeout.fire(timeout.backtrace) if timeout && @record.soft_deadline_passed?
        end
      end

      private

      # The lock is free again while the file is written, so that the request may end.
      def tell_slow
        timeout, stack = @lock.synchronize { [@timeout, @timeout&.stack] }
        @slow.tell(timeout, stack)
      end

      def absorb
        Thread.handle_interrupt(IMMEDIATE) { Thread.pass }
      rescue RequestTimeout
        nil
      end
    end
  end
end
