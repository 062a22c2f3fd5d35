# frozen_string_literal: true

require "pando/fork_safety/threads/native_thread"

module Pando
  class Batch
    # Calls code that does not belong to the batch. A child that such code forks, and does not end, would return as a
    # second batch: it would process the items of its parent again, over the parent's connections. So it ends where the
    # code returns.
    module ForkGuard
      class << self
        def call
          pid = Process.pid
          yield
        ensure
          end_child(pid, $!) unless pid == Process.pid # rubocop:disable Style/SpecialGlobalVars
        end

        private

        # A child that called exit gets the status that it asked for.
        def end_child(parent, error)
          wanted = error.status if error.is_a?(SystemExit)
          tell(parent, error) unless wanted
        ensure
          exit!(wanted || 1)
        end

        def tell(parent, error)
          reason = " (#{error.class}: #{error.message.lines.first&.chomp})" if error
          warn "pando: process #{Process.pid}, forked by process #{parent} in code that the batch called, returned " \
               "to the batch and ends: end it with exit!#{reason}"
        end
      end
    end

    # A point in time to wait until, on the monotonic clock.
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

    # A queue that pops with a timeout, which Thread::Queue can do only from Ruby 3.2 on.
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
    class Semaphore
      def initialize(permits)
        @free = permits
        @waiting = [] # a TimedQueue for each caller
        @lock = Mutex.new
        @closed = false
      end

      # Call this with interrupts held off. It lets them in while it waits, and then no permit is lost.
      #
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

    # A fixed number of threads that run the same task until it returns. A thread that ends in any other way
    # (Thread#kill, Thread#raise) is replaced. The threads hold interrupts off; the task lets them in where that is
    # safe.
    class ThreadPool
      # Seconds that a killed thread has to end.
      KILL = 1.0

      def initialize(size, name, &task)
        @size = size
        @name = name
        @task = task
        @threads = []
        @replaced = [] # threads that may take a moment to end
        @lock = Mutex.new
        @stopping = false
      end

      def start
        @lock.synchronize { start_thread while @threads.size < @size && !@stopping }
        self
      end

      def member? = @threads.include?(Thread.current)

      def size = @threads.size

      def empty? = @threads.empty?

      def short? = @lock.synchronize { size < @size && !@stopping }

      # Waits for threads that have been told to end. Kills those that have not ended by the deadline.
      #
      # @return [Array<Thread>] threads that are still alive
      def stop(deadline)
        threads = @lock.synchronize do
          @stopping = true
          @threads + @replaced
        end
        ThreadPool.end_all(threads, deadline)
      end

      # @return [Array<Thread>] threads that are still alive
      def self.end_all(threads, deadline)
        natives = threads.map(&:native_thread_id)
        threads.each { |thread| thread.join(deadline.left) }
        late = threads.select(&:alive?).each(&:kill)
        patience = Deadline.in(KILL)
        alive = late.reject { |thread| thread.join(patience.left) }
        ForkSafety::NativeThread.wait_gone(*natives) if alive.empty?
        alive
      end

      private

      # A new thread inherits the mask of the thread that makes it, so it holds interrupts off from its first
      # instruction.
      def start_thread
        Thread.handle_interrupt(Object => :never) { @threads << Thread.new { run } }
      end

      def run
        Thread.current.name = @name
        @task.call
        finished = true
      rescue Exception => e # rubocop:disable Lint/RescueException
        ErrorLog.write("a thread of #{@name} ended:", e)
      ensure
        replace unless finished
        ForkSafety::NativeThread.rest
      end

      # When the process ends, Ruby kills all threads and waits until none is left: make no new one then.
      def replace
        @lock.synchronize do
          @threads.delete(Thread.current)
          @replaced.select!(&:alive?)
          @replaced << Thread.current
          start_thread if !@stopping && Thread.main.alive?
        end
      rescue ThreadError => e
        ErrorLog.write("a thread of #{@name} could not be replaced:", e)
      end
    end
  end
end
