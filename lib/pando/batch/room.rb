# frozen_string_literal: true

require "pando/batch/mailbox"

module Pando
  class Batch
    # Room for a number of jobs. Who finds none waits for its turn, first come, first served.
    #
    # @api private
    class Room
      def initialize(places)
        @free = places
        @waiting = []
        @lock = Mutex.new
        @closed = false
      end

      # Called where interrupts are held off: they are let in while it waits, and then no place is lost.
      #
      # @param deadline [Deadline]
      # @return [Boolean] false: no room in time, or it was closed
      def take(deadline)
        turn = nil
        @lock.synchronize do
          return false if @closed

          if @free.positive?
            @free -= 1
            return true
          end
          @waiting << (turn = Mailbox.new)
        end
        await(turn, deadline)
      end

      # A place is free again.
      def give
        @lock.synchronize do
          turn = @waiting.shift
          turn ? turn << true : @free += 1
        end
      end

      # Sends away those who wait, and all who come.
      def close
        @lock.synchronize do
          @closed = true
          @waiting.each { |turn| turn << false }
          @waiting.clear
        end
      end

      private

      def await(turn, deadline)
        returned = false
        answer = Thread.handle_interrupt(Object => :on_blocking) { turn.pop(timeout: deadline.left) }
        answer = last_word(turn) if answer.nil?
        returned = true
        answer
      ensure
        give if !returned && last_word(turn)
      end

      # @return [Boolean] whether a place was given in the very moment of giving up
      def last_word(turn)
        @lock.synchronize { @waiting.delete(turn) ? false : !turn.empty? && turn.pop }
      end
    end
  end
end
