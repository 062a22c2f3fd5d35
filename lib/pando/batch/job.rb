# frozen_string_literal: true

module Pando
  class Batch
    # One item on its way through the batch: the work to do, and its outcome. Only one thread at a time works on it. Its
    # state belongs to OpenJobs.
    #
    # @api private
    class Job
      attr_reader :item, :key, :value, :error, :attempts
      # :done, :failed, or :unfinished until it is one of these
      attr_accessor :state

      # @param done [TimedQueue, nil] gets the job when it has ended; nil: no caller waits for it
      def initialize(item, key, work, done = nil)
        @item = item
        @key = key
        @work = work
        @done = done
        @attempts = 0
        @state = :unfinished
        @answered = @withdrawn = @dead_letter_begun = false
      end

      # Whether the last attempt has an outcome. A thread may be killed after the attempt and before it has dealt with
      # the error.
      def answered? = @answered

      # No caller waits for it any more: it need not be done.
      def withdrawn? = @withdrawn

      def withdraw
        @withdrawn = true
      end

      # Rescues everything. If the thread is killed, the job gets an error for that, too.
      def attempt
        @attempts += 1
        @value = Thread.handle_interrupt(Object => :immediate) { @work.call(@item) }
        answer(nil)
      rescue Exception => e # rubocop:disable Lint/RescueException
        answer(e)
      ensure
        answer(killed) unless answered?
      end

      def prepare_retry
        @answered = false
      end

      # @return [Boolean] true once; false: the thread was killed in the middle of its dead letter
      def begin_dead_letter = !@dead_letter_begun && (@dead_letter_begun = true)

      # The waiting caller gets the error. If there is none, it goes to stderr.
      def report_error
        ErrorLog.write("an item failed, and there is no dead_letter:", @error) unless @done
        true
      end

      def finish = @done&.push(self)

      private

      # The stack of the killed thread is gone, so the backtrace is the block's place.
      def killed
        ThreadKilled.new.tap { |error| error.set_backtrace([@work.source_location&.join(":")].compact) }
      end

      def answer(error)
        @error = error
        @answered = true
      end
    end
  end
end
