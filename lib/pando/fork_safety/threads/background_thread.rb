# frozen_string_literal: true

require "pando/fork_safety/callbacks"
require "pando/fork_safety/threads/backlog"
require "pando/fork_safety/threads/runner"

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

      # @return [String]
      attr_reader :name
      # @return [String] "file:line" of its block
      attr_reader :location
      # @return [Object] what it is registered by
      attr_reader :key

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
        @location = block.source_location.join(":")
        @queue = queue
        @backlog = Backlog.new(limit)
        @runner = Runner.new(@name, stop, @backlog.method(:wake), -> { block.call(self) })
        @in_child = in_child
        @within = within
        @late = late
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
      def stopping? = @runner.stopping?

      # @return [Boolean]
      def alive? = @runner.alive?

      # @return [Thread, nil] the one that runs the block now, or did last
      def thread = @runner.thread

      # @return [self] started, unless it runs
      def start
        @runner.start
        self
      end

      # For good: it will not be started by a fork any more.
      #
      # @return [Array<Object>] what was still in its queue, for whoever wants to see to it
      # @raise [ThreadNotStopped] it did not end in time
      def stop
        halt if alive? && !@runner.current?
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
        @resume = alive? && !@runner.current?
        halt if @resume
      end

      def after_fork_in_parent
        @runner.resume if @resume
      end

      def after_fork_in_child
        drop_queue if @in_child == :drop && !Callbacks.daemon?
        @runner.renew if @resume
      end

      def drop_queue
        @backlog.empty!
        @queue&.clear
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
  end
end
