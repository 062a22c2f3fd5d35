# frozen_string_literal: true

module Pando
  module ForkSafety
    module Callbacks
      # Lets one thread fork at a time. A Mutex that knows which threads wait for it.
      #
      # @api private
      class Turn
        def initialize
          @lock = Mutex.new
          @waiting = {}.compare_by_identity
        end

        # @return [Boolean]
        def mine? = @lock.owned?

        # @return [Boolean] the thread waits for another thread's turn to end
        def waited_for_by?(thread) = @waiting.key?(thread)

        # Runs the block when it is this thread's turn.
        #
        # @raise [ThreadError] in a trap handler, where a thread may try to lock but not wait
        def take
          @lock.try_lock || wait
          yield
        ensure
          @lock.unlock if mine?
        end

        # Called in a new process, where the other waiting threads do not exist.
        def alone
          @waiting.clear
        end

        private

        def wait
          @waiting[Thread.current] = true
          @lock.lock
        ensure
          @waiting.delete(Thread.current)
        end
      end
    end
  end
end
