# frozen_string_literal: true

require "pando/native"
require "pando/fork_safety/callbacks/entry"

module Pando
  module ForkSafety
    # Runs the callbacks of libraries around each fork of this process, with or without the
    # server. Lives in every process that has loaded it; a child inherits everything.
    #
    # Forks take turns, from the first callback before to the last one after. A fork that a
    # callback makes runs no callbacks.
    #
    # @api private
    module Callbacks
      TURN = Turn.new
      private_constant :TURN

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
        def in_turn(&block) = TURN.mine? ? yield : TURN.take(&block)

        # @return [Boolean] the thread waits for another thread's fork to end
        def waits?(thread) = TURN.waited_for_by?(thread)

        # @param kind [Symbol] :fork or :daemon
        # @yield forks; returns in two processes, or raises in one or both of them
        # @raise [ForkRefused] from the first callback that raises before the fork
        def around(kind, &block)
          return yield if @entries.empty? || TURN.mine?

          TURN.take do
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
            entry.before
          end
          complete = true
        rescue ForkRefused
          begun.shift
          raise
        ensure
          finish(begun, :parent) unless complete
        end

        def be_born(entries)
          TURN.alone
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
          failure = entry&.after(side)
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
        def _fork = Callbacks.around(:fork) { super }
        def daemon(*) = Callbacks.around(:daemon) { super }

        Process.singleton_class.prepend(self)
      end
    end
  end
end
