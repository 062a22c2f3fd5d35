# frozen_string_literal: true

module Pando
  module Swarm
    # Reports how the start of a thread went. The starting thread waits for the report; the new thread makes it once.
    #
    # Made by a part of a runner that connects in a thread of its own, in a node.
    #
    # @api private
    class FirstWord
      def initialize
        @queue = Thread::Queue.new
      end

      # Returns when the start has succeeded.
      # @raise [Exception] the error that the thread met instead
      def wait
        error = @queue.pop
        raise error if error
      end

      # @param error [Exception, nil] nil: success. Later calls have no effect
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
