# frozen_string_literal: true

require "pando/batch/mailbox"

module Pando
  class Batch
    # Room for a limited number of jobs. A caller that finds none waits for its turn, first come, first served.
    #
    # @api private
    class Room
      def initialize(places)
        @free = places
        @waiting = []
        @lock = Mutex.new
        @closed = false
      end

      # Call this with interrupts held off. It lets them in while it waits, and then no place is lost.
      #
      # @param deadline [Deadline]
      # @return [Boolean] false: there was no room in time, or the room was closed
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

      # Gives a place back.
      def give
        @lock.synchronize do
          turn = @waiting.shift
          turn ? turn << true : @free += 1
        end
      end

      # Turns away all waiting and all future callers.
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

      # @return [Boolean] whether a place was given at the very moment of giving up
      def last_word(turn)
        @lock.synchronize { @waiting.delete(turn) ? false : !turn.empty? && turn.pop }
      end
    end
  end
end
