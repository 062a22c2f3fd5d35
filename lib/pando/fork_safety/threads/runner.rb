# frozen_string_literal: true

require "pando/fork_safety/callbacks"
require "pando/fork_safety/threads/native_thread"

module Pando
  module ForkSafety
    # The life of a background thread: begun, told to end, waited for, begun again. Owned by a {BackgroundThread}.
    #
    # @api private
    class Runner
      KILL_WITHIN = 1 # seconds
      SLICE = 0.01 # seconds between two looks at a thread that is to end

      # @return [Thread, nil] the one that runs the block now, or did last
      attr_reader :thread

      # @param name [String] the thread's own
      # @param stop [#call, nil] tells a block that does not ask {#stopping?}
      # @param wake [#call] has one that waits ask it
      # @param block [Proc] what the thread does
      def initialize(name, stop, wake, block)
        @name = name
        @stop = stop
        @wake = wake
        @block = block
        @lock = Mutex.new # of those below
        @thread = nil
        @ended = true     # the block has returned and is not called again
        @stopping = false # it is to end
        @told = false     # and may know it
      end

      def alive? = !@ended && !!@thread&.alive?
      def current? = Thread.current.equal?(@thread)

      # In the thread.
      def stopping?
        stopping = @stopping # it may be called off before the next line
        @told = true if stopping
        stopping
      end

      # Unless it runs.
      def start
        @lock.synchronize { spawn unless alive? }
      end

      # @param within [Numeric] seconds @param late [Symbol] see BackgroundThread::LATE
      # @return [Boolean] whether it has ended, or may go on
      def halt(within, late)
        request_stop
        return true if halted_within?(within) || late == :allow
        return false unless late == :kill

        @thread.kill
        halted_within?(KILL_WITHIN)
      end

      # If it has not noticed that it was to end, it goes on; if it has, it is started again, by itself or here.
      def resume
        @lock.synchronize do
          @stopping = false
          spawn if @ended || !@thread.alive?
        end
      end

      # In a child, where the thread is not.
      def renew
        @lock.synchronize do
          @stopping = false
          @told = !@stop.nil? && !@ended # it was late: what told it may still be on its way
          spawn
        end
      end

      private

      def request_stop
        @lock.synchronize do
          @stopping = true
          @told = true if @stop
        end
        @stop&.call
        @wake.call
      end

      # One that wants to fork itself and waits for its turn cannot end before it had it. It has come to a place where
      # it expects to be copied, and stands still there: that will do.
      def halted_within?(seconds)
        deadline = now + seconds
        until joined?(@thread, SLICE)
          return true if Callbacks.waits?(@thread)
          return false if now > deadline
        end
        NativeThread.wait_gone(@native)
      end

      # What a thread has died of is reported by Ruby, and nobody else's business.
      def joined?(thread, seconds = nil)
        thread.join(seconds)
      rescue Exception => error # rubocop:disable Lint/RescueException
        raise unless error.equal?(@error)

        true
      end

      def spawn
        @ended = false
        before = @thread
        @thread = Thread.new do
          joined?(before) if before
          run
        end
      end

      def run
        NativeThread.name(@name)
        @native = NativeThread.current
        loop do
          @block.call
          break if over?
        end
      rescue Exception => error # rubocop:disable Lint/RescueException
        @error = error
        raise
      ensure
        @lock.synchronize { @ended = true if current? }
        NativeThread.rest
      end

      # A block that came back for a stop that was called off meanwhile is called again.
      def over?
        @lock.synchronize do
          again = @told && !@stopping
          @told = false
          @ended = !again
        end
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
