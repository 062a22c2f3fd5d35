# frozen_string_literal: true

require "pando/native"
require "pando/fork_safety/callbacks/registry"
require "pando/fork_safety/callbacks/turn"

module Pando
  module ForkSafety
    # What libraries do around each fork of this process, whoever forks and whether or not a
    # server runs. Lives in every process that has loaded it; a child inherits it all.
    #
    # Forks take turns, from the first callback before to the last one after. One that a
    # callback makes itself runs no callbacks.
    #
    # @api private
    module Callbacks
      TURN = Turn.new
      REGISTRY = Registry.new
      private_constant :TURN, :REGISTRY

      @kind = nil
      @holder = nil
      @owed = nil
      @reporter = nil

      class << self
        # @return [Boolean] this process is being made by Process.daemon: its parent ends
        def daemon? = @kind == :daemon

        # @return [nil]
        def register(entry)
          in_turn { REGISTRY.put(entry) }
        end

        # @return [Boolean]
        def unregister(key)
          in_turn { REGISTRY.delete(key) }
        end

        # @return [Boolean]
        def registered?(key) = REGISTRY.include?(key)

        # @return [Array<BackgroundThread>]
        def threads = REGISTRY.entries.filter_map(&:thread)

        # The block, while nobody forks.
        def in_turn(&block) = TURN.mine? ? yield : TURN.take(&block)

        # @return [Boolean] it waits until the fork of another thread is over
        def waits?(thread) = TURN.waited_for_by?(thread)

        # @param kind [Symbol] :fork or :daemon
        # @yield forks: returns in two processes, or raises in one of them or in both
        # @raise [ForkRefused] from the first callback that raises before the fork
        def around(kind, &block)
          return yield if REGISTRY.entries.empty? || TURN.mine?

          TURN.take do
            @kind = kind
            call(REGISTRY.entries, &block)
          end
        end

        # The children that the block forks from this thread run their callbacks not at once, but when
        # they call {settle}: a process that hangs in a callback must be known to somebody before.
        def hold_child
          @holder = Thread.current
          yield
        ensure
          @holder = nil
        end

        # In a child that was held.
        #
        # @return [nil]
        # @raise [CallbackFailed] the first failure; the other callbacks have run
        def settle
          entries = @owed
          return unless entries

          @owed = nil

          first, *others = in_turn { run_all(entries, :child) }
          others.each { |failure| tell(failure) }
          raise first if first
        end

        # @yieldparam failure [CallbackFailed]
        # @return [nil]
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

        # The last to come is the first to go: it may need the others.
        def prepare(entries)
          begun = []
          entries.reverse_each do |entry|
            begun.unshift(entry) # before it is called: whatever interrupts it, it can be undone
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

        # An error is not raised: the caller is to have the child's pid, and the child must not
        # climb up through frames that are its parent's.
        def finish(entries, side)
          run_all(entries, side).each { |failure| tell(failure) }
        end

        # All of them, even if one ends the thread.
        # @return [Array<CallbackFailed>]
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
          warn "pando: and the block that was to be told of it raised #{error.class}: #{error.message}"
        end

        def warn_of(failure)
          warn "pando: #{failure.message}", *failure.cause.backtrace&.first(5)&.map { |line| "    #{line}" }
        end
      end
    end
  end
end

require "pando/fork_safety/callbacks/fork_hook"
