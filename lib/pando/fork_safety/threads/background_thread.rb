# frozen_string_literal: true

require "pando/fork_safety/callbacks"
require "pando/fork_safety/threads/backlog"
require "pando/fork_safety/threads/native_thread"

module Pando
  module ForkSafety
    # A background thread did not end in the time it has, and its owner had chosen that there be no fork then.
    class ThreadNotStopped < ForkRefused
      def passing? = true
    end

    # A thread of a library that survives forks: it is stopped before one, so that no lock is held and nothing
    # is half done when the process is copied, and started again in the parent and in the child. Made by
    # {ForkSafety.thread}; owned by the library.
    #
    #     @thread = Pando::ForkSafety.thread("metrics") do |thread|
    #       while (metric = thread.pop) # nil: it is time to end
    #         transmit(metric)
    #       end
    #     end
    #     @thread << metric
    #
    # What it is doing it ends; what waits in its queue is done by the parent. The child has an empty
    # queue, or with `in_child: :keep` a copy. Process.daemon moves the queue into the child: the parent ends.
    class BackgroundThread
      # What to do when it has not ended in time: no fork; end it by Thread#kill; fork all the same.
      LATE = %i[refuse kill allow].freeze
      IN_CHILD = %i[drop keep].freeze
      KILL_WITHIN = 1 # seconds

      # @return [String]
      attr_reader :name
      # @return [String] "file:line" of its block
      attr_reader :location
      # @return [Object] what it is registered by
      attr_reader :key
      # @return [Thread, nil] the one that runs the block now, or did last
      attr_reader :thread

      # @param name [String] for messages, and as the thread's own
      # @param key [Object, nil] by which to replace it; without it there may be many of that name
      # @param stop [#call, nil] tells the block to end, for one with a loop of its own; without it the block
      #   has {#pop}, {#wait} or {#stopping?} to find out
      # @param queue [#clear, nil] that the library keeps itself; without it the thread has one of its own
      # @param in_child [Symbol] what becomes of the queue's copy in a child, one of {IN_CHILD}
      # @param limit [Integer] items that its own queue holds at most
      # @param within [Numeric] seconds it may take to end
      # @param late [Symbol] if it takes longer, one of {LATE}
      # @yieldparam thread [BackgroundThread]
      # @raise [ArgumentError]
      def initialize(name, key: nil, stop: nil, queue: nil, in_child: :drop, limit: 100_000, within: 5, late: :refuse,
                     &block)
        raise ArgumentError, "a background thread needs a block" unless block
        raise ArgumentError, "in_child: is one of #{IN_CHILD.inspect}" unless IN_CHILD.include?(in_child)
        raise ArgumentError, "late: is one of #{LATE.inspect}" unless LATE.include?(late)
        raise ArgumentError, "queue: needs a method `clear`" unless queue.nil? || queue.respond_to?(:clear)

        @name = name.to_s
        @key = key || self
        @block = block
        @location = block.source_location.join(":")
        @stop = stop
        @queue = queue
        @backlog = Backlog.new(limit)
        @in_child = in_child
        @within = within
        @late = late
        @lock = Mutex.new # of the four below
        @thread = nil
        @ended = true     # its block has returned and is not called again
        @stopping = false # it is to end
        @told = false     # and may know it
      end

      # @param item [Object] neither nil nor false, which {#pop} could not tell from nothing
      # @return [Boolean] false: the queue is full, the item is not in it
      def push(item) = @backlog.push(item)

      # @return [self]
      def <<(item)
        push(item)
        self
      end

      # @return [Integer] items that wait
      def size = @backlog.size

      # @return [Boolean] whether none waits
      def empty? = size.zero?

      # In the thread: the next item.
      #
      # @param seconds [Numeric, nil] to wait at most
      # @return [Object, nil] nil when the block is to end, or nothing came in time
      def pop(seconds = nil) = @backlog.pop(seconds) { stopping? }

      # In the thread: sleeps.
      #
      # @param seconds [Numeric]
      # @return [Boolean] whether the block is to end; then at once
      def wait(seconds)
        @backlog.sleep(seconds) { stopping? }
        stopping?
      end

      # In the thread.
      #
      # @return [Boolean] the block is to end: it is called again after the fork
      def stopping?
        stopping = @stopping # it may be called off before the next line
        @told = true if stopping
        stopping
      end

      # @return [Boolean]
      def alive? = !@ended && !!@thread&.alive?

      # @return [self] started, unless it runs
      def start
        @lock.synchronize { spawn unless alive? }
        self
      end

      # For good: it will not be started by a fork any more.
      #
      # @return [Array<Object>] what was still in its queue, for whoever wants to see to it
      # @raise [ThreadNotStopped] it did not end in time
      def stop
        halt_or_withdraw if alive? && !Thread.current.equal?(@thread)
        ForkSafety.unregister(key)
        @backlog.empty!
      end

      # @api private
      # @return [Hash{Symbol => #call}] for {ForkSafety.register}
      def callbacks
        { before: method(:before_fork), parent: method(:after_fork_in_parent), child: method(:after_fork_in_child) }
      end

      def inspect = "#<#{self.class} #{name} (#{location}) #{alive? ? "runs" : "ended"}, #{size} waiting>"

      private

      # The thread that forks is not stopped: it goes on in both processes.
      def before_fork
        @resume = alive? && !Thread.current.equal?(@thread)
        halt_or_withdraw if @resume
      end

      def after_fork_in_parent
        resume if @resume
      end

      def after_fork_in_child
        drop_queue if @in_child == :drop && !Callbacks.daemon?
        return unless @resume

        @lock.synchronize do
          @stopping = false
          @told = !@stop.nil? && !@ended # it was late: what told it may still be on its way
          spawn
        end
      end

      def drop_queue
        @backlog.empty!
        @queue&.clear
      end

      def halt_or_withdraw
        halted = halt
      ensure
        resume unless halted # whatever interrupted it
      end

      # @return [true] when it has ended, or its lateness is allowed
      # @raise [ThreadNotStopped]
      def halt
        request_stop
        return true if ended_within?(@within) || @late == :allow

        if @late == :kill
          @thread.kill
          return true if ended_within?(KILL_WITHIN)
        end
        raise ThreadNotStopped.new("the background thread #{name} (#{location}) did not end within #{@within} s" \
                                   "#{" and could not be killed" if @late == :kill}", key: self, location: location)
      end

      def request_stop
        @lock.synchronize do
          @stopping = true
          @told = true if @stop
        end
        @stop&.call
        @backlog.wake
      end

      def ended_within?(seconds)
        joined?(@thread, seconds) && NativeThread.wait_gone(@native)
      end

      # What a thread has died of is reported by Ruby, and nobody else's business.
      def joined?(thread, seconds = nil)
        thread.join(seconds)
      rescue Exception => error # rubocop:disable Lint/RescueException
        raise unless error.equal?(@error)

        true
      end

      # If it has not noticed that it was to end, it goes on; if it has, it is started again, by itself or here.
      def resume
        @lock.synchronize do
          @stopping = false
          spawn if @ended || !@thread.alive?
        end
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
        NativeThread.name(name)
        @native = NativeThread.current
        loop do
          @block.call(self)
          break if over?
        end
      rescue Exception => error # rubocop:disable Lint/RescueException
        @error = error
        raise
      ensure
        @lock.synchronize { @ended = true if Thread.current.equal?(@thread) }
        NativeThread.rest
      end

      # A block that came back for a stop that was called off meanwhile is called again.
      def over?
        @lock.synchronize do
          again = @told && !@stopping
          @told = false
          @ended = !again
        end
      end
    end
  end
end
