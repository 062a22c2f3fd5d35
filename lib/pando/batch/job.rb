# frozen_string_literal: true

module Pando
  class Batch
    # One item on its way: what is to be done with it, and what has become of it. One thread at a time has it in hand;
    # its state belongs to the Ledger.
    #
    # @api private
    class Job
      attr_reader :item, :key, :value, :error, :attempts
      # :done, :failed, or :unfinished until it is one of these
      attr_accessor :state

      # @param done [Mailbox, nil] where somebody waits for its end
      def initialize(item, key, work, done = nil)
        @item = item
        @key = key
        @work = work
        @done = done
        @attempts = 0
        @state = :unfinished
        @answered = @withdrawn = @buried = false
      end

      # Somebody may have been killed before the error of the last attempt was seen to.
      def answered? = @answered

      # Nobody waits for it any more: it need not be done.
      def withdrawn? = @withdrawn

      def withdraw
        @withdrawn = true
      end

      # Lets nothing through but the end of the thread; of that, too, it leaves an error behind.
      def attempt
        @attempts += 1
        @value = Thread.handle_interrupt(Object => :immediate) { @work.call(@item) }
        answer(nil)
      rescue Exception => e # rubocop:disable Lint/RescueException
        answer(e)
      ensure
        answer(killed) unless answered?
      end

      def renew
        @answered = false
      end

      # @return [Boolean] true once: who comes again was killed in the middle of its dead letter
      def bury! = !@buried && (@buried = true)

      # Who waits for it gets the error; else nobody would ever see it.
      def tell
        Complaint.make("an item failed, and there is no dead_letter:", @error) unless @done
        true
      end

      def report = @done&.push(self)

      private

      # Where it was killed nobody knows: the stack is gone.
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
