# frozen_string_literal: true

require "pando/events"
require "pando/sys"

module Pando
  module Swarm
    # Emits one event when a node loses its broker and one when it reaches it again, and says how long to wait until the
    # next try. Owned by the object that keeps the connection, in a node.
    #
    # @api private
    class BrokerWatch
      FIRST_PAUSE = 0.25 # seconds
      LONGEST_PAUSE = 5.0

      def initialize(node)
        @node = node
        @pause = FIRST_PAUSE
      end

      # A try to reach the broker has failed.
      # @return [Float] seconds until the next try
      def lost(error)
        tell("lost", reason: "#{error.message} (#{error.class})") unless @since
        @since ||= Sys.now
        pause = @pause
        @pause = [@pause * 2, LONGEST_PAUSE].min
        pause
      end

      # A try has succeeded.
      # @return [Boolean] whether the broker had been lost
      def found
        return false unless @since

        tell("found", seconds: (Sys.now - @since).round(1))
        @since = nil
        @pause = FIRST_PAUSE
        true
      end

      private

      def tell(what, **more)
        Events.emit("broker.#{what}", node: @node.kind, slot: @node.number, pid: Process.pid, **more)
      end
    end

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
      def set(error = nil)
        return if set?

        @queue.push(error)
        @queue.close
      end

      def set? = @queue.closed?
    end
  end
end
