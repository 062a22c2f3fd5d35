# frozen_string_literal: true

module Pando
  class Batch
    # A point in time to wait until, on the monotonic clock.
    #
    # @api private
    class Deadline
      def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      # @param seconds [Numeric, nil] nil: no deadline
      def self.in(seconds) = new(seconds && (now + seconds))

      def initialize(time)
        @time = time
      end

      # @return [Float, nil] seconds, as TimedQueue#pop and Thread#join take them
      def left = @time && [@time - self.class.now, 0.0].max
    end

    # A queue with a single reader and any number of writers. It pops with a timeout, which Thread::Queue can do only
    # from Ruby 3.2 on.
    #
    # @api private
    class TimedQueue < Thread::Queue
      unless instance_method(:pop).parameters.include?(%i[key timeout])
        def initialize
          super
          @lock = Mutex.new
          @arrival = ConditionVariable.new
        end

        def push(item)
          @lock.synchronize do
            super
            @arrival.signal
          end
        end
        alias << push

        # @param timeout [Numeric, nil] seconds
        # @return [Object, nil] nil: nothing came in time
        def pop(timeout: nil)
          return super() unless timeout

          deadline = Deadline.in(timeout)
          @lock.synchronize do
            while empty?
              left = deadline.left
              return unless left.positive?

              @arrival.wait(@lock, left)
            end
            super(true)
          end
        end
      end
    end

    # A semaphore that serves its callers in order, and that waits with a deadline. The Executor limits the number of
    # open jobs with it.
    #
    # @api private
    class Semaphore
      def initialize(permits)
        @free = permits
        @waiting = [] # a TimedQueue for each caller
        @lock = Mutex.new
        @closed = false
      end

      # Call this with interrupts held off. It lets them in while it waits, and then no permit is lost.
      #
      # @param deadline [Deadline]
      # @return [Boolean] false: no permit was free in time, or the semaphore was closed
      def acquire(deadline)
        answer = nil
        @lock.synchronize do
          return false if @closed

          if @free.positive?
            @free -= 1
            return true
          end
          @waiting << (answer = TimedQueue.new)
        end
        await(answer, deadline)
      end

      def release
        @lock.synchronize do
          answer = @waiting.shift
          answer ? answer << true : @free += 1
        end
      end

      # Turns away all waiting and all future callers.
      def close
        @lock.synchronize do
          @closed = true
          @waiting.each { |answer| answer << false }
          @waiting.clear
        end
      end

      private

      def await(answer, deadline)
        returned = false
        acquired = Thread.handle_interrupt(Object => :on_blocking) { answer.pop(timeout: deadline.left) }
        acquired = cancel(answer) if acquired.nil?
        returned = true
        acquired
      ensure
        release if !returned && cancel(answer)
      end

      # @return [Boolean] whether the permit came at the very moment of giving up
      def cancel(answer)
        @lock.synchronize { @waiting.delete(answer) ? false : !answer.empty? && answer.pop }
      end
    end
  end
end
