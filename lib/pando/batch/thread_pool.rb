# frozen_string_literal: true

require "pando/batch/waiting"
require "pando/fork_safety/threads/native_thread"

module Pando
  class Batch
    # A fixed number of threads that run the same task until it returns. A thread that ends in any other way
    # (Thread#kill, Thread#raise) is replaced. The threads hold interrupts off; the task lets them in where that is
    # safe.
    #
    # @api private
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

      # @return [self]
      def start
        @lock.synchronize { start_thread while @threads.size < @size && !@stopping }
        self
      end

      # @return [Boolean] whether the current thread is one of its threads
      def member? = @threads.include?(Thread.current)

      # @return [Integer] number of threads
      def size = @threads.size

      # @return [Boolean] whether no thread has been started yet
      def empty? = @threads.empty?

      # @return [Boolean] whether a thread could not be replaced
      def short? = @lock.synchronize { size < @size && !@stopping }

      # Waits for threads that have been told to end. Kills those that have not ended by the deadline.
      #
      # @param deadline [Deadline]
      # @return [Array<Thread>] threads that are still alive
      def stop(deadline)
        threads = @lock.synchronize do
          @stopping = true
          @threads + @replaced
        end
        ThreadPool.end_all(threads, deadline)
      end

      # @param threads [Array<Thread>] @param deadline [Deadline] a thread that has not ended by then is killed
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
        ForkSafety::NativeThread.name(@name)
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
