# frozen_string_literal: true

module Pando
  module ForkSafety
    module Callbacks
      # One thread forks at a time. A Mutex that tells who waits for it.
      #
      # @api private
      class Turn
        def initialize
          @lock = Mutex.new
          @waiting = {}.compare_by_identity
        end

        # @return [Boolean]
        def mine? = @lock.owned?

        # @return [Boolean] it goes no further before the turn of another has ended
        def waited_for_by?(thread) = @waiting.key?(thread)

        # The block, when it is this thread's turn.
        #
        # @raise [ThreadError] in a trap handler, which may try to lock, but not wait
        def take
          @lock.try_lock || wait
          yield
        ensure
          @lock.unlock if mine?
        end

        # In a new process, which the others that waited are not in.
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
