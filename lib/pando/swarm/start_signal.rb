# frozen_string_literal: true

module Pando
  module Swarm
    # The outcome of the start of a thread. The starting thread waits for it; the new thread sets it once.
    #
    # Made by a part of a runner that connects in a thread of its own, in a node.
    #
    # @api private
    class StartSignal
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
      def set(error = nil)
        return if set?

        @queue.push(error)
        @queue.close
      end

      # @return [Boolean]
      def set? = @queue.closed?
    end
  end
end
