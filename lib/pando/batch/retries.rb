# frozen_string_literal: true

require "pando/batch/thread_pool"
require "pando/batch/waiting"

module Pando
  class Batch
    # Decides whether an item is retried, and after how long. The pause is random, so that items that failed together
    # are not retried together.
    #
    # @api private
    class Retries
      BACKOFF = (0.5..30)
      # After so many doublings, any maximum is reached.
      DOUBLINGS = 30

      # @see Batch#initialize
      def initialize(attempts, backoff, errors)
        Arguments.count(:attempts, attempts)
        Arguments.errors(Array(errors))
        unless backoff.respond_to?(:call) || seconds?(backoff)
          raise ArgumentError, "backoff: must be a Range of seconds, or something to call"
        end

        @attempts = attempts
        @backoff = backoff
        @errors = Array(errors)
      end

      # @param job [Job] a job whose last attempt has failed
      # @return [Float, nil] seconds until the next attempt; nil: there is none
      def delay(job)
        return if job.attempts >= @attempts || @errors.none? { |pattern| matches?(pattern, job.error) }

        [Float(@backoff.respond_to?(:call) ? @backoff.call(job.attempts) : doubled(job.attempts)), 0.0].max
      rescue StandardError => e
        ErrorLog.write("an item is not retried, because retry_on or backoff raised", e)
      end

      private

      def matches?(pattern, error) = pattern.respond_to?(:call) ? pattern.call(error) : error.is_a?(pattern)

      def doubled(attempts)
        longest = [@backoff.begin * (2**[attempts - 1, DOUBLINGS].min), @backoff.end].min
        longest * (1 - (rand / 2))
      end

      def seconds?(range)
        range.is_a?(Range) && range.begin.is_a?(Numeric) && range.end.is_a?(Numeric) && !range.begin.negative? &&
          range.begin <= range.end
      end
    end

    # Starts the next attempts when their time has come, in a thread of its own, which starts with the first retry.
    # Owned by the Executor.
    #
    # @api private
    class RetryTimer
      Entry = Struct.new(:time, :cancelled, :action)
      STOP = :stop
      RECHECK = :recheck

      def initialize(name)
        @inbox = TimedQueue.new
        @entries = [] # by time; only the thread uses it
        @thread = ThreadPool.new(1, name) { run }
      end

      # @param seconds [Numeric]
      # @param cancelled [#call] whether there is no reason to wait any more
      # @yield a short action that raises nothing
      def after(seconds, cancelled, &action)
        @thread.start
        @inbox << Entry.new(Deadline.now + seconds, cancelled, action)
      end

      # Runs the actions that have been cancelled since, without further wait.
      def recheck
        @inbox << RECHECK unless @thread.empty?
      end

      # Actions that have not run are dropped.
      #
      # @return [Array<Thread>] threads that are still alive
      def stop(deadline)
        @inbox << STOP
        @thread.stop(deadline)
      end

      private

      def run
        until (message = receive) == STOP
          case message
          when Entry then insert(message)
          when RECHECK then drop_cancelled
          else run_due
          end
        end
      end

      # nil: the first entry is due.
      def receive
        seconds = @entries.empty? ? nil : [@entries.first.time - Deadline.now, 0.0].max
        Thread.handle_interrupt(Object => :on_blocking) { @inbox.pop(timeout: seconds) }
      end

      def insert(entry)
        return entry.action.call if entry.cancelled.call

        @entries.insert(@entries.bsearch_index { |other| other.time > entry.time } || -1, entry)
      end

      def drop_cancelled
        cancelled, @entries = @entries.partition { |entry| entry.cancelled.call }
        cancelled.each { |entry| entry.action.call }
      end

      def run_due
        now = Deadline.now
        @entries.shift.action.call while @entries.first && @entries.first.time <= now
      end
    end
  end
end
