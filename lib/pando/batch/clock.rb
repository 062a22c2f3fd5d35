# frozen_string_literal: true

require "pando/batch/crew"
require "pando/batch/deadline"
require "pando/batch/mailbox"

module Pando
  class Batch
    # Runs actions later, in a thread that starts with the first action.
    #
    # @api private
    class Clock
      Entry = Struct.new(:time, :moot, :action)
      STOP = :stop
      REVIEW = :review

      def initialize(name)
        @inbox = Mailbox.new
        @entries = [] # by time; only the thread uses it
        @crew = Crew.new(1, name) { keep }
      end

      # @param seconds [Numeric]
      # @param moot [#call] whether there is no reason to wait any more
      # @yield a short action that raises nothing
      def after(seconds, moot, &action)
        @crew.start
        @inbox << Entry.new(Deadline.now + seconds, moot, action)
      end

      # Runs all actions that have become moot now.
      def review
        @inbox << REVIEW unless @crew.empty?
      end

      # Actions that have not run are dropped.
      #
      # @return [Array<Thread>] threads that are still alive
      def stop(deadline)
        @inbox << STOP
        @crew.stop(deadline)
      end

      private

      def keep
        until (letter = receive) == STOP
          case letter
          when Entry then insert(letter)
          when REVIEW then hurry
          else act
          end
        end
      end

      # nil: the first entry is due.
      def receive
        seconds = @entries.empty? ? nil : [@entries.first.time - Deadline.now, 0.0].max
        Thread.handle_interrupt(Object => :on_blocking) { @inbox.pop(timeout: seconds) }
      end

      def insert(entry)
        return entry.action.call if entry.moot.call

        @entries.insert(@entries.bsearch_index { |other| other.time > entry.time } || -1, entry)
      end

      def hurry
        moot, @entries = @entries.partition { |entry| entry.moot.call }
        moot.each { |entry| entry.action.call }
      end

      def act
        now = Deadline.now
        @entries.shift.action.call while @entries.first && @entries.first.time <= now
      end
    end
  end
end
