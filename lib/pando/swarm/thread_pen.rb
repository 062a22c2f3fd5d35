# frozen_string_literal: true

module Pando
  module Swarm
    # Keeps the threads of another library together. Ruby gives a new thread the group of the thread that starts it. So
    # every thread that is started in a thread of the pen is in the pen too, and can be ended and waited for. Owned by a
    # runner, in a node.
    #
    # @api private
    class ThreadPen
      def initialize
        @group = ThreadGroup.new
      end

      # @param name [String] of the thread
      # @return [Thread] it joins the pen before it does anything else
      def start(name)
        Thread.new do
          @group.add(Thread.current)
          Thread.current.name = name
          yield
        end
      end

      # @return [Array<Thread>] its threads that are alive
      def threads = @group.list

      # Kills all its threads, whatever they are doing.
      # @param within [Numeric] seconds
      # @return [Boolean] whether no thread is left
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

      # Ruby itself reports the exception that a thread died of.
      def ended?(thread, seconds)
        thread.join(seconds)
      rescue Exception # rubocop:disable Lint/RescueException
        true
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
