# frozen_string_literal: true

require "pando/fork_safety/callbacks"
require "pando/fork_safety/threads/native_thread"

module Pando
  module ForkSafety
    # Starts, stops and restarts a background thread. Owned by a {BackgroundThread}.
    #
    # @api private
    class Runner
      KILL_WITHIN = 1 # seconds
      SLICE = 0.01 # seconds between two checks of a thread that should end

      # @return [Thread, nil] the thread that runs the block now, or ran it last
      attr_reader :thread

      # @param name [String] the thread's name
      # @param stop [#call, nil] tells a block that does not call {#stopping?} to end
      # @param wake [#call] wakes a waiting block so that it calls {#stopping?}
      # @param block [Proc] what the thread does
      def initialize(name, stop, wake, block)
        @name = name
        @stop = stop
        @wake = wake
        @block = block
        @lock = Mutex.new # guards the variables below
        @thread = nil
        @ended = true     # the block has returned and will not be called again
        @stopping = false # the thread should end
        @told = false     # and the block may know it
      end

      def alive? = !@ended && !!@thread&.alive?
      def current? = Thread.current.equal?(@thread)

      # Called in the thread.
      def stopping?
        stopping = @stopping # the stop may be cancelled before the next line
        @told = true if stopping
        stopping
      end

      # Starts the thread, unless it is running.
      def start
        @lock.synchronize { spawn unless alive? }
      end

      # @param within [Numeric] seconds @param late [Symbol] see BackgroundThread::LATE
      # @return [Boolean] whether the fork may go on
      def halt(within, late)
        request_stop
        return true if halted_within?(within) || late == :allow
        return false unless late == :kill

        @thread.kill
        halted_within?(KILL_WITHIN)
      end

      # If the block has not noticed the stop, it goes on. Otherwise it is started again, by the thread itself or here.
      def resume
        @lock.synchronize do
          @stopping = false
          spawn if @ended || !@thread.alive?
        end
      end

      # Called in a child, where the thread does not exist.
      def renew
        @lock.synchronize do
          @stopping = false
          @told = !@stop.nil? && !@ended # it did not end in time: the stop may still be queued
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

      # A thread that waits for its own turn to fork cannot end before that. It waits at a place where it expects to be
      # copied, so that is enough.
      def halted_within?(seconds)
        deadline = now + seconds
        until joined?(@thread, SLICE)
          return true if Callbacks.waits?(@thread)
          return false if now > deadline
        end
        NativeThread.wait_gone(@native)
      end

      # Ruby reports the error that ended a thread, so this ignores it.
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

      # If the block returned for a stop that was cancelled meanwhile, call it again.
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
