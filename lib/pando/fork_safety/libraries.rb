# frozen_string_literal: true

require "pando/errors"
require "pando/fork_safety/finding"
require "pando/fork_safety/status"
require "pando/fork_safety/libraries/known"

module Pando
  module ForkSafety
    # What Pando knows about the libraries that this process has loaded: which handle a fork by themselves,
    # which Pando prepares, and which are left to you. This module loads no library and needs no Bundler. The
    # table itself is in libraries/known/*.rb.
    #
    #     Pando::ForkSafety::Libraries.loaded.each { |entry| puts entry }
    module Libraries
      class << self
        # @return [Array<Entry>] of the libraries that are loaded now, in the table's order; then, as :unknown,
        #   the gems that have loaded a C extension and are not in the table
        def loaded
          Known.loaded.map { |library| Entry.of(library) } + Native.unknown
        end

        # @param prepared [Array<String>] names of libraries that the user's hooks take care of
        # @return [Array<Finding>] one for each other library that is left to you or unknown
        def findings(prepared: [])
          loaded.reject { |entry| prepared.include?(entry.name) }.filter_map(&:finding)
        end

        # @param name [String] of a loaded one
        # @return [Boolean] whether it is in use here, so that no fork is safe until the user has done something
        def refuses?(name) = Known.library(name).rule&.refuses? || false

        # Sets the variables that libraries read when they are loaded. Variables that are already set stay.
        def prepare_environment
          Known::ENVIRONMENT.each { |name, value| ENV[name] ||= value }
          nil
        end

        # From now on, the first use of a library that does not survive a fork marks this process and its children,
        # as {Pando.no_longer_fork_safe!} does.
        def watch
          Known.loaded.each do |library|
            library.marks.each { |mark| FirstUse.watch(mark, library.name) }
            library.step(:watch)&.call
          end
          nil
        end

        # Tells clients with long-lived connections (Action Cable's WebSockets) to reconnect elsewhere. Call it again
        # until it returns true.
        #
        # @return [Boolean] whether no such connection is left
        def say_goodbye = steps(:say_goodbye).map { |_, step| step.call }.all?

        # In a worker that is about to end: closes the WebSockets that are still open, and says why.
        #
        # @param stopping [Boolean] whether the server stops; false: the worker is replaced
        # @return [Boolean] whether there were any
        def hang_up(stopping) = steps(:hang_up).map { |_, step| step.call(stopping) }.any?

        # In a process that is about to end: finishes what the libraries have queued in it.
        #
        # @param seconds [Float] at most
        # @yieldparam library [String] @yieldparam unfinished [String] what was not finished in time
        def before_exit(seconds)
          steps(:before_exit).each do |name, step|
            unfinished = step.call(seconds)
            yield name, unfinished.join(", ") if unfinished.any?
          end
          nil
        end

        # Runs the block, which forks, and around it the preparation of the loaded libraries: before the fork, and
        # then in the parent, even if the block raises. The child must call {settle}, which does its part. It must be
        # innermost: after the user's hooks before a fork, and before the user's hooks after a fork.
        #
        # @param strict [Boolean] whether to refuse the fork, now and for good, if a library cannot be prepared.
        #   Otherwise the fork goes on without the preparation.
        # @param prepared [Array<String>] names of libraries that the user's hooks take care of
        # @param on_failure [#call, nil] called with the library's name and the error, if something failed and the
        #   fork goes on
        # @return the return value of the block, in both processes
        # @raise [Unsafe] with strict; nothing was forked
        def around_fork(strict: false, prepared: [], on_failure: nil, &fork)
          preparation = Preparation.new(Known.loaded, on_failure, prepared: prepared)
          preparation.around(strict, &fork)
        ensure
          @preparation = preparation if preparation&.child?
        end

        # Does the child's part of {around_fork}.
        def settle
          preparation = @preparation
          @preparation = nil
          preparation&.settle
          nil
        end

        # @param location [String] "file:line" of a Ruby thread's block
        # @return [String, nil] the library that starts this thread again in each child
        def reviving(location) = Known.loaded.find { |library| library.revives?(location) }&.name

        # @param library [String, nil] @param thread [String] the name of one of its native threads
        # @return [Boolean] whether the library ends this thread before each fork, and starts it again on both sides
        def ends_native_thread?(library, thread)
          Known.loaded.any? { |one| one.name == library && one.ends_native_thread?(thread) }
        end

        # @return [String, nil] the advice in the row of this gem
        def advice(name)
          Known.loaded.find { |library| library.name == name }&.rule&.advice
        end

        private

        def steps(name)
          Known.loaded.filter_map { |library| [library.name, library.step(name)] if library.step(name) }
        end
      end

      # Notices the first call of a method, after which this process must not be forked.
      module FirstUse
        @watched = {}

        class << self
          def watched?(mark) = @watched.key?(mark)

          def watch(mark, library)
            owner = Constants.find(mark.constant) or return
            owner = owner.singleton_class if mark.singleton
            name = mark.method_name
            return if @watched[mark] || !(owner.method_defined?(name) || owner.private_method_defined?(name))

            @watched[mark] = true
            owner.prepend(watcher(name, "#{library}: #{mark.reason}"))
            nil
          end

          private

          def watcher(name, reason)
            told = false
            Module.new do
              define_method(name) do |*arguments, &block|
                unless told
                  told = true
                  ForkSafety.give_up(reason)
                end
                super(*arguments, &block)
              end
              ruby2_keywords(name)
            end
          end
        end
      end

      # A library could not be prepared for a fork.
      class Unsafe < Error; end

      # A library cannot be prepared for a fork now, and has named the obstacle (ForkSafety.obstruct).
      class Obstructed < Unsafe; end

      # Prepares the loaded libraries around one fork: {#around} in the forking process, {#settle} in its child.
      class Preparation
        # @param libraries [Array<Library>] in the order of preparation
        # @param prepared [Array<String>] libraries that the user's hooks take care of
        def initialize(libraries, on_failure = nil, prepared: [])
          @libraries = libraries
          @on_failure = on_failure
          @prepared = prepared
          @ready = []
          @forker = Process.pid
        end

        def around(strict)
          @libraries.each { |library| refuse_threads(library, strict) if library.unsafe_threads? }
          @libraries.each { |library| refuse_use(library) || refuse_late_comer(library) } if strict
          @libraries.each { |library| prepare(library, strict) if library.handled? }
          yield
        ensure
          recover(:in_parent) unless child?
        end

        def settle = recover(:in_child)

        # @return [Boolean] whether this process was forked in the block of {around}
        def child? = Process.pid != @forker

        private

        def prepare(library, strict)
          %i[watch before_fork].each { |step| library.step(step)&.call }
          @ready << library
        rescue StandardError => e
          fail_for(library, e, strict)
        end

        # After the fork, an error cannot be undone by not forking, so it is only reported.
        def recover(step)
          @ready.reverse_each do |library|
            library.step(step)&.call
          rescue StandardError => e
            @on_failure&.call(library.name, e)
          end
        end

        # A native thread does not exist in a child, but its locks and the code that waits for it do.
        def refuse_threads(library, strict)
          count = Threads.names.count { |name| library.unsafe_thread?(name) }
          return unless count.positive?

          reason = "#{count} of its native threads are alive, and a child has none of them"
          fail_for(library, Unsafe.new(reason), strict)
        end

        def refuse_use(library)
          rule = library.rule
          return if rule.nil? || @prepared.include?(library.name) || !rule.refuses?

          fail_for(library, Unsafe.new("#{rule.note} #{rule.advice}"), true)
        end

        # The library was not loaded yet when Pando started to watch for its first use.
        def refuse_late_comer(library)
          return if library.marks.all? { |mark| FirstUse.watched?(mark) }

          fail_for(library, Unsafe.new("it was loaded late and may have been used"), true)
        end

        def fail_for(library, error, strict)
          return @on_failure&.call(library.name, error) unless strict

          reason = "#{library.name}: #{error.message.lines.first&.chomp}"
          ForkSafety.give_up(reason) unless error.is_a?(Obstructed)
          raise Unsafe, reason
        end
      end
    end
  end
end
