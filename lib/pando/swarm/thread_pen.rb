# frozen_string_literal: true

module Pando
  module Swarm
    # The threads of somebody else's library, kept together: Ruby gives a new thread the group of the one that starts
    # it, so whatever is started in a thread of the pen is in the pen too, and can be ended and waited for.
    # Owned by a runner, in a node.
    #
    # @api private
    class ThreadPen
      def initialize
        @group = ThreadGroup.new
      end

      # @param name [String] of the thread
      # @return [Thread] in the pen before it does anything
      def start(name)
        Thread.new do
          @group.add(Thread.current)
          Thread.current.name = name
          yield
        end
      end

      # @return [Array<Thread>] those alive
      def threads = @group.list

      # Ends all of them, whatever they do.
      # @param within [Numeric] seconds
      # @return [Boolean] whether none is left
      def clear(within)
        deadline = now + within
        until (left = threads - [Thread.current]).empty?
          return false if now > deadline

          left.each(&:kill)
          left.each { |thread| ended?(thread, [deadline - now, 0].max) }
        end
        true
      end

      private

      # What a thread has died of is told by Ruby.
      def ended?(thread, seconds)
        thread.join(seconds)
      rescue Exception # rubocop:disable Lint/RescueException
        true
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
