# frozen_string_literal: true

module Pando
  module Swarm
    # How the start of a thread went: who has begun it waits for that, and the thread says it once.
    #
    # Made by a runner's part that connects in a thread of its own, in a node.
    #
    # @api private
    class FirstWord
      def initialize
        @queue = Thread::Queue.new
      end

      # Returns when the start went well.
      # @raise [Exception] what the thread has met instead
      def wait
        error = @queue.pop
        raise error if error
      end

      # @param error [Exception, nil] nil: all is well. Whatever comes later is not the start's any more
      # @return [void]
      def say(error = nil)
        return if said?

        @queue.push(error)
        @queue.close
      end

      # @return [Boolean]
      def said? = @queue.closed?
    end
  end
end
