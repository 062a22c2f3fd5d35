# frozen_string_literal: true

require "pando/fork_safety/callbacks"
require "pando/fork_safety/threads/native_thread"
require "pando/sys"

module Pando
  # (see fork_safety.rb)
  module ForkSafety
    # Starts, stops and restarts a background thread. Owned by a {BackgroundThread}.
    class Runner
      KILL_WITHIN = 1 # seconds
      SLICE = 0.01 # seconds between two checks of a thread that should end

      # @return [Thread, nil] the thread that runs the block now, or ran it last
      attr_reader :thread

      # @param stop [#call, nil] tells a block that does not call {#stopping?} to end
      # @param wake [#call] wakes a waiting block so that it calls {#stopping?}
      def initialize(name, stop, wake, block)
        @name = name
        @stop = stop
        @wake = wake
        @block = block
        @lock = Mutex.new # guards the variables below
        @thread = nil
        @ended = true     # the block has returned and will not be called again
        @stopping = false # the thread should end
        @told = false     # and the block may know it
      end

      def alive? = !@ended && !!@thread&.alive?
      def current? = Thread.current.equal?(@thread)

      # Called in the thread.
      def stopping?
        stopping = @stopping # the stop may be cancelled before the next line
        @told = true if stopping
        stopping
      end

      # Starts the thread, unless it is running.
      def start
        @lock.synchronize { spawn unless alive? }
      end

      # @param within [Numeric] seconds @param late [Symbol] see BackgroundThread::LATE
      # @return [Boolean] whether the fork may go on
      def halt(within, late)
        request_stop
        return true if halted_within?(within) || late == :allow
        return false unless late == :kill

        @thread.kill
        halted_within?(KILL_WITHIN)
      end

      # If the block has not noticed the stop, it goes on. Otherwise it is started again, by the thread itself or here.
      def resume
        @lock.synchronize do
          @stopping = false
          spawn if @ended || !@thread.alive?
        end
      end

      # Called in a child, where the thread does not exist.
      def renew
        @lock.synchronize do
          @stopping = false
          @told = !@stop.nil? && !@ended # it did not end in time: the stop may still be queued
          spawn
        end
      end

      private

      def request_stop
        @lock.synchronize do
          @stopping = true
          @told = true if @stop
        end
        @stop&.call
        @wake.call
      end

      # A thread that waits for its own turn to fork cannot end before that. It waits at a place where it expects to be
      # copied, so that is enough.
      def halted_within?(seconds)
        deadline = Sys.now + seconds
        until joined?(@thread, SLICE)
          return true if Callbacks.waits?(@thread)
          return false if Sys.now > deadline
        end
        NativeThread.wait_gone(@native)
      end

      # Ruby reports the error that ended a thread, so this ignores it.
      def joined?(thread, seconds = nil)
        thread.join(seconds)
      rescue Exception => error # rubocop:disable Lint/RescueException
        raise unless error.equal?(@error)

        true
      end

      def spawn
        @ended = false
        before = @thread
        @thread = Thread.new do
          joined?(before) if before
          run
        end
      end

      def run
        Thread.current.name = @name
        @native = Thread.current.native_thread_id
        loop do
          @block.call
          break if over?
        end
      rescue Exception => error # rubocop:disable Lint/RescueException
        @error = error
        raise
      ensure
        @lock.synchronize { @ended = true if current? }
        NativeThread.rest
      end

      # If the block returned for a stop that was cancelled meanwhile, call it again.
      def over?
        @lock.synchronize do
          again = @told && !@stopping
          @told = false
          @ended = !again
        end
      end
    end

    # A background thread did not end in time, and its owner chose to refuse the fork in that case.
    class ThreadNotStopped < ForkRefused
      def passing? = true
    end

    # A thread of a library that survives forks. Pando stops it before a fork, so that it holds no lock and leaves
    # nothing half done when the process is copied. Then Pando starts it again in the parent and in the child. Made
    # by {ForkSafety.thread}; owned by the library.
    #
    #     @thread = Pando::ForkSafety.thread("metrics") do |thread|
    #       while (metric = thread.pop) # nil: it is time to end
    #         transmit(metric)
    #       end
    #     end
    #     @thread << metric
    #
    # The thread finishes what it is doing. The parent handles what waits in the queue. The child starts with an
    # empty queue, or with `in_child: :keep` with a copy. Process.daemon moves the queue into the child, because
    # the parent ends.
    class BackgroundThread
      # What to do if it has not ended in time: refuse the fork, kill the thread, or fork anyway.
      LATE = %i[refuse kill allow].freeze
      IN_CHILD = %i[drop keep].freeze

      attr_reader :name
      # @return [String] "file:line" of its block
      attr_reader :location
      # @return [Object] the key under which it is registered
      attr_reader :key

      # @param name [String] for messages, and as the thread's own
      # @param key [Object, nil] for replacing it; without a key there may be many threads of that name
      # @param stop [#call, nil] tells a block with a loop of its own to end; without it, the block
      #   uses {#pop}, {#wait} or {#stopping?}
      # @param queue [#clear, nil] the library's own queue; without it, the thread has one of its own
      # @param in_child [Symbol] what happens to the queue's copy in a child, one of {IN_CHILD}
      # @param limit [Integer] the most items in its own queue
      # @param within [Numeric] seconds it may take to end
      # @param late [Symbol] if it takes longer, one of {LATE}
      # @yieldparam thread [BackgroundThread]
      # @raise [ArgumentError]
      def initialize(name, key: nil, stop: nil, queue: nil, in_child: :drop, limit: 100_000, within: 5, late: :refuse,
                     &block)
        raise ArgumentError, "a background thread needs a block" unless block
        raise ArgumentError, "in_child: must be one of #{IN_CHILD.inspect}" unless IN_CHILD.include?(in_child)
        raise ArgumentError, "late: must be one of #{LATE.inspect}" unless LATE.include?(late)
        raise ArgumentError, "queue: needs a method `clear`" unless queue.nil? || queue.respond_to?(:clear)

        @name = name.to_s
        @key = key || self
        @location = block.source_location.join(":")
        @queue = queue
        @limit = limit
        @items = []
        @lock = Mutex.new # guards the items
        @changed = ConditionVariable.new
        @runner = Runner.new(@name, stop, method(:wake), -> { block.call(self) })
        @in_child = in_child
        @within = within
        @late = late
      end

      # @param item [Object] neither nil nor false, because {#pop} returns nil for nothing
      # @return [Boolean] false: the queue is full and the item was not added
      def push(item)
        @lock.synchronize do
          return false if @items.size >= @limit

          @items << item
          @changed.broadcast
          true
        end
      end

      # @return [self]
      def <<(item)
        push(item)
        self
      end

      # @return [Integer] waiting items
      def size = @items.size

      # @return [Boolean] whether no item waits
      def empty? = size.zero?

      # Called in the thread: takes the next item.
      #
      # @param seconds [Numeric, nil] to wait at most
      # @return [Object, nil] nil if the block should end, or nothing came in time
      def pop(seconds = nil)
        @lock.synchronize do
          await(seconds) { !@items.empty? }
          @items.shift unless stopping?
        end
      end

      # Called in the thread: sleeps.
      #
      # @param seconds [Numeric]
      # @return [Boolean] whether the block should end; if so, returns at once
      def wait(seconds)
        @lock.synchronize { await(seconds) { false } }
        stopping?
      end

      # Called in the thread.
      #
      # @return [Boolean] whether the block should end; Pando calls it again after the fork
      def stopping? = @runner.stopping?

      # @return [Boolean]
      def alive? = @runner.alive?

      # @return [Thread, nil] the thread that runs the block now, or ran it last
      def thread = @runner.thread

      # @return [self] started, unless it is already running
      def start
        @runner.start
        self
      end

      # Stops it for good: no fork starts it again.
      #
      # @return [Array<Object>] what was still in its queue, for the caller to handle
      # @raise [ThreadNotStopped] it did not end in time
      def stop
        halt if alive? && !@runner.current?
        ForkSafety.unregister(key)
        empty!
      end

      # @api private
      # @return [Hash{Symbol => #call}] for {ForkSafety.register}
      def callbacks
        { before: method(:before_fork), parent: -> { @runner.resume if @resume }, child: method(:after_fork_in_child) }
      end

      def inspect = "#<#{self.class} #{name} (#{location}) #{alive? ? "runs" : "ended"}, #{size} waiting>"

      private

      # Returns when the time is over, the block should end, or the given block returns true.
      def await(seconds)
        deadline = seconds && (Sys.now + seconds)
        until stopping? || yield
          left = deadline && (deadline - Sys.now)
          return if left && left <= 0

          @changed.wait(@lock, left)
        end
      end

      # Makes a waiting block see that it should end.
      def wake = @lock.synchronize { @changed.broadcast }

      # @return [Array<Object>] the former items
      def empty! = @lock.synchronize { @items.slice!(0..) }

      # Does not stop the thread that forks: it goes on in both processes.
      def before_fork
        @resume = alive? && !@runner.current?
        halt if @resume
      end

      def after_fork_in_child
        if @in_child == :drop && !Callbacks.daemon?
          empty!
          @queue&.clear
        end
        @runner.renew if @resume
      end

      def halt
        halted = @runner.halt(@within, @late) or raise not_stopped
      ensure
        @runner.resume unless halted # whatever interrupted it
      end

      def not_stopped
        message = "the background thread #{name} (#{location}) did not end within #{@within} s" \
                  "#{" and could not be killed" if @late == :kill}"
        ThreadNotStopped.new(message, key: key, location: location)
      end
    end

    class << self
      # Starts a thread that is stopped before each fork and started again on both sides of it.
      #
      # With a key, it replaces the thread that has this key: Pando stops that thread, and hands its queue on.
      #
      # @param (see BackgroundThread#initialize)
      # @yieldparam thread [BackgroundThread]
      # @return [BackgroundThread]
      # @raise (see BackgroundThread#initialize)
      # @raise [ThreadNotStopped] the thread to be replaced did not end
      def thread(name, **options, &block)
        thread = BackgroundThread.new(name, **options, &block)
        Callbacks.in_turn { install(thread) }
        thread
      end

      # @return [Array<BackgroundThread>] all registered threads
      def threads = Callbacks.threads

      private

      def install(thread)
        former = threads.find { |other| other.key == thread.key }
        left = former ? former.stop : []
        Callbacks.register(Callbacks::Entry.new(thread.key, thread.callbacks, thread.location, thread: thread))
        left.each { |item| thread.push(item) }
        thread.start
      end
    end
  end
end
