# frozen_string_literal: true

require "pando/fork_safety/finding"
require "pando/fork_safety/status"
require "pando/fork_safety/libraries/known"
require "pando/fork_safety/libraries/preparation"

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
        # then in parent and child, even if the block raises. It must be innermost: after the user's hooks before a
        # fork, and before the user's hooks after a fork. The child does its part in {settle}.
        #
        # @param strict [Boolean] whether to refuse the fork, now and for good, if a library cannot be prepared.
        #   Otherwise the fork goes on without the preparation.
        # @param prepared [Array<String>] names of libraries that the user's hooks take care of
        # @param on_failure [#call, nil] called with the library's name and the error, if something failed and the
        #   fork goes on
        # @return the return value of the block, in both processes
        # @raise [Unsafe] with strict; nothing was forked
        def around_fork(strict: false, prepared: [], on_failure: nil, &fork)
          @preparation = Preparation.new(Known.loaded, on_failure, prepared: prepared)
          @preparation.around(strict, &fork)
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

        # @return [String, nil] the advice in the row of this gem
        def advice(name)
          Known.loaded.find { |library| library.name == name }&.rule&.advice
        end

        private

        def steps(name)
          Known.loaded.filter_map { |library| [library.name, library.step(name)] if library.step(name) }
        end
      end
    end
  end
end
