# frozen_string_literal: true

require "pando/errors"

module Pando
  module ForkSafety
    # A callback raised before a fork, so the fork did not take place. The `cause` is its error.
    class ForkRefused < Error
      # @return [Object] the key under which the callback was registered
      attr_reader :key
      # @return [String, nil] `file:line` of the callback
      attr_reader :location

      def initialize(message, key: nil, location: nil)
        super(message)
        @key = key
        @location = location
      end
    end

    # A callback raised after a fork. The `cause` is its error.
    class CallbackFailed < Error
      # @return [Symbol] :parent or :child
      attr_reader :side
      # @return [Object] the key under which the callback was registered
      attr_reader :key
      # @return [String, nil] `file:line` of the callback
      attr_reader :location

      def initialize(message, side: nil, key: nil, location: nil)
        super(message)
        @side = side
        @key = key
        @location = location
      end
    end

    module Callbacks
      # The callbacks of one library around each fork. A value; owned by {Callbacks}.
      #
      # @api private
      class Entry
        # Errors that end the process or the request are passed on to the caller.
        PASSED_ON = [RequestTimeout, SystemExit, SignalException, NoMemoryError].freeze
        SIDES = { before: "before a fork", parent: "in the parent after a fork",
                  child: "in the child after a fork" }.freeze

        attr_reader :key
        # @return [BackgroundThread, nil] the thread that the callbacks belong to
        attr_reader :thread

        # @param callables [Hash{Symbol => #call, nil}] by :before, :parent, :child
        # @param line [String] "file:line" for callables without a location
        def initialize(key, callables, line, thread: nil)
          @key = key
          @callables = callables.compact
          @line = line
          @thread = thread
          freeze
        end

        def before
          @callables[:before]&.call
        rescue *PASSED_ON, ForkRefused
          raise
        rescue Exception => error # rubocop:disable Lint/RescueException
          raise ForkRefused.new(words(:before, error), key: key, location: location(:before))
        end

        def after(side)
          @callables[side]&.call
          nil
        rescue *PASSED_ON
          raise
        rescue Exception => error # rubocop:disable Lint/RescueException
          failure(side, error)
        end

        private

        def failure(side, error)
          raise CallbackFailed.new(words(side, error), side: side, key: key, location: location(side)), cause: error
        rescue CallbackFailed => failure
          failure # raised so that it has its cause and backtrace
        end

        def words(side, error)
          "#{name} #{SIDES.fetch(side)} at #{location(side)} raised #{error.class}: #{error.message}"
        end

        def name
          return "the background thread #{thread.name}" if thread

          "callback #{key.is_a?(String) || key.is_a?(Symbol) ? key : key.class}"
        end

        def location(side)
          callable = @callables[side]
          return @line if thread || !callable.respond_to?(:source_location)

          callable.source_location&.join(":") || @line
        end
      end

      # Lets one thread fork at a time. A Mutex that knows which threads wait for it.
      #
      # @api private
      class Turn
        def initialize
          @lock = Mutex.new
          @waiting = {}.compare_by_identity
        end

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
