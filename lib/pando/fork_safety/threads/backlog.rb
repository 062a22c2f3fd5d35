# frozen_string_literal: true

module Pando
  module ForkSafety
    # The queue of a background thread, in memory and bounded. Producers never wait. The single
    # consumer waits until there is an item or it is interrupted.
    #
    # @api private
    class Backlog
      # @param limit [Integer]
      def initialize(limit)
        @limit = limit
        @items = []
        @lock = Mutex.new
        @changed = ConditionVariable.new
      end

      # @return [Boolean] false: the queue is full
      def push(item)
        @lock.synchronize do
          return false if @items.size >= @limit

          @items << item
          @changed.broadcast
          true
        end
      end

      # @param seconds [Float, nil] to wait at most; nil: for ever
      # @yieldreturn [Boolean] whether to stop waiting
      # @return [Object, nil] nil: stopped waiting, or nothing came
      def pop(seconds = nil, &given_up)
        @lock.synchronize do
          await(seconds, given_up) { !@items.empty? }
          @items.shift unless given_up.call
        end
      end

      # @param seconds [Float]
      # @yieldreturn [Boolean] whether to stop waiting
      # @return [nil]
      def sleep(seconds, &given_up)
        @lock.synchronize { await(seconds, given_up) { false } }
        nil
      end

      # Makes the consumer check whether to stop waiting.
      def wake = @lock.synchronize { @changed.broadcast }

      def size = @items.size

      # @return [Array<Object>] the former items
      def empty!
        @lock.synchronize { @items.slice!(0..) }
      end

      private

      def await(seconds, given_up)
        deadline = seconds && (now + seconds)
        until given_up.call || yield
          left = deadline && (deadline - now)
          return if left && left <= 0

          @changed.wait(@lock, left)
        end
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
