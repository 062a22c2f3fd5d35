# frozen_string_literal: true

require "pando/errors"
require "pando/fork_safety/sections"
require "pando/native"

module Pando
  # (see fork_safety.rb)
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

    class << self
      # Registers callbacks around each fork of this process and its descendants: Kernel#fork,
      # Process.fork, IO.popen("-"), Process.daemon and the server's forks. `before` runs in reverse
      # order of registration, the other two in order of registration.
      #
      # A second registration under the same key replaces the first.
      #
      # @param key [Object] compared by ==; a Symbol or String is shown in messages
      # @param before [#call, nil] in the forking process. If it raises, there is no fork: Pando calls the `parent`
      #   of those that had already run, and fork raises {ForkRefused}
      # @param parent [#call, nil] in the forking process afterwards, also when the fork failed
      # @param child [#call, nil] in the new process, never in the middle one of a double fork
      # @return [nil]
      def register(key, before: nil, parent: nil, child: nil)
        callables = { before: before, parent: parent, child: child }
        unless callables.values.any? && callables.values.compact.all? { |one| one.respond_to?(:call) }
          raise ArgumentError, "register(#{key.inspect}) needs something to call: before:, parent: or child:"
        end

        Callbacks.register(Callbacks::Entry.new(key, callables, caller(1, 1).first[/\A.*:\d+/]))
      end

      # @param key [Object]
      # @return [Boolean] whether the key was registered
      def unregister(key) = Callbacks.unregister(key)

      # @param key [Object]
      # @return [Boolean]
      def registered?(key) = Callbacks.registered?(key)

      # Sets the block that is called when a callback raises after a fork. Without a block, Pando warns on stderr.
      #
      # @yieldparam failure [CallbackFailed]
      # @return [nil]
      def on_callback_failure(&block) = Callbacks.report_to(&block)
    end

    # Runs the callbacks of libraries around each fork of this process, with or without the
    # server. Lives in every process that has loaded it; a child inherits everything.
    #
    # Forks take turns, from the first callback before to the last one after. A fork that a
    # callback makes runs no callbacks, and makes an ordinary child even around the fork of a sibling.
    module Callbacks
      # The callbacks of one library around each fork. A value.
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

      TURN = Mutex.new
      # The threads that wait for their turn.
      WAITING = {}.compare_by_identity
      private_constant :TURN, :WAITING

      # By key, in the order of registration. It is read without a lock, because each change makes a new Hash.
      @entries = {}.freeze
      @kind = nil
      @holder = nil
      @owed = nil
      @reporter = nil

      class << self
        # @return [Boolean] Process.daemon is making this process: its parent ends
        def daemon? = @kind == :daemon

        # Replaces the entry that has this key, or appends a new one.
        def register(entry)
          in_turn { @entries = { **@entries, entry.key => entry }.freeze }
          nil
        end

        def unregister(key)
          in_turn do
            known = registered?(key)
            @entries = @entries.except(key).freeze if known
            known
          end
        end

        def registered?(key) = @entries.key?(key)

        def threads = @entries.each_value.filter_map(&:thread)

        # Runs the block while no thread forks.
        #
        # @raise [ThreadError] in a trap handler, where a thread may try to lock but not wait
        def in_turn
          return yield if TURN.owned?

          begin
            TURN.try_lock || wait
            yield
          ensure
            TURN.unlock if TURN.owned?
          end
        end

        # @return [Boolean] the thread waits for another thread's fork to end
        def waits?(thread) = WAITING.key?(thread)

        # @param kind [Symbol] :fork or :daemon
        # @yield forks; returns in two processes, or raises in one or both of them
        # @raise [ForkRefused] from the first callback that raises before the fork
        def around(kind, &block)
          return yield if @entries.empty? || TURN.owned?

          in_turn do
            @kind = kind
            call(@entries.values, &block)
          end
        end

        # Children that the block forks from this thread run their callbacks only when they call {settle}. By
        # then the monitor knows the process, in case it hangs in a callback.
        def hold_child
          @holder = Thread.current
          yield
        ensure
          @holder = nil
        end

        # Runs the callbacks in a child that was held.
        #
        # @raise [CallbackFailed] the first failure; the other callbacks have run
        def settle
          entries = @owed
          return unless entries

          @owed = nil

          first, *others = in_turn { run_all(entries, :child) }
          others.each { |failure| tell(failure) }
          raise first if first
        end

        def report_to(&reporter)
          @reporter = reporter
          nil
        end

        private

        def wait
          WAITING[Thread.current] = true
          TURN.lock
        ensure
          WAITING.delete(Thread.current)
        end

        def call(entries)
          forks = Sys.forks
          prepare(entries)
          begin
            yield
          ensure
            Sys.forks == forks ? finish(entries, :parent) : be_born(entries)
          end
        end

        # In reverse order: a later library may need the earlier ones.
        def prepare(entries)
          begun = []
          entries.reverse_each do |entry|
            begun.unshift(entry) # before the call, so that it can be undone whatever interrupts it
            Sys.fork_plainly { entry.before }
          end
          complete = true
        rescue ForkRefused
          begun.shift
          raise
        ensure
          finish(begun, :parent) unless complete
        end

        def be_born(entries)
          WAITING.clear # the other threads do not exist here
          return finish(entries, :child) unless @holder == Thread.current

          @owed = entries
        end

        # Does not raise an error: the caller needs the child's pid, and the child must not unwind its
        # parent's stack.
        def finish(entries, side)
          run_all(entries, side).each { |failure| tell(failure) }
        end

        # Runs all of them, even if one ends the thread.
        def run_all(entries, side, failures = [])
          entry, *others = entries
          failure = entry && Sys.fork_plainly { entry.after(side) }
          failures << failure if failure
          failures
        ensure
          run_all(others, side, failures) unless others.empty?
        end

        def tell(failure)
          return @reporter.call(failure) if @reporter

          warn_of(failure)
        rescue StandardError => error
          warn_of(failure)
          warn "pando: the block given to on_callback_failure raised #{error.class}: #{error.message}"
        end

        def warn_of(failure)
          warn "pando: #{failure.message}", *failure.cause.backtrace&.first(5)&.map { |line| "    #{line}" }
        end
      end

      # Runs before Ruby's own fork. Kernel#fork, Process.fork and IO.popen("-") call _fork.
      # Process.daemon does not, and ends the parent within the C library. A command (spawn,
      # system, backticks) does not copy this process and calls neither.
      module ForkHook
        def _fork = Callbacks.around(:fork) { Sections.shut_out { super } }
        def daemon(*) = Callbacks.around(:daemon) { Sections.shut_out { super } }

        Process.singleton_class.prepend(self)
      end
    end
  end
end
