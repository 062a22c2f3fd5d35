# frozen_string_literal: true

require "pando/fork_safety/finding"
require "pando/fork_safety/status"
require "pando/fork_safety/libraries/entry"
require "pando/fork_safety/libraries/first_use"
require "pando/fork_safety/libraries/known"
require "pando/fork_safety/libraries/native"
require "pando/fork_safety/libraries/preparation"

module Pando
  module ForkSafety
    # What is known of the libraries that this process has loaded: which of them put up with a fork by
    # themselves, for which Pando does what is needed, and which are left to you. It loads no library, and
    # needs no Bundler. The table itself is in libraries/known/*.rb.
    #
    #     Pando::ForkSafety::Libraries.loaded.each { |entry| puts entry }
    module Libraries
      class << self
        # @return [Array<Entry>] of the libraries that are loaded now, in the table's order; then the gems that
        #   have loaded an extension of their own and are not in the table, as :unknown
        def loaded
          Known.loaded.map { |library| Entry.of(library) } + Native.unknown
        end

        # @param prepared [Array<String>] the names of those that the user's hooks take care of
        # @return [Array<Finding>] one for each other that is left to you or not known
        def findings(prepared: [])
          loaded.reject { |entry| prepared.include?(entry.name) }.filter_map(&:finding)
        end

        # @param name [String] of a loaded one
        # @return [Boolean] whether it is in use here and no fork is safe until the user has done something
        def refuses?(name) = Known.library(name).rule&.refuses? || false

        # What must be in the environment before the libraries are loaded. What is there already stays.
        #
        # @return [nil]
        def prepare_environment
          Known::ENVIRONMENT.each { |name, value| ENV[name] ||= value }
          nil
        end

        # From now on the first use of a library that no fork survives marks this process and its children, as
        # {Pando.no_longer_fork_safe!} does.
        #
        # @return [nil]
        def watch
          Known.loaded.each do |library|
            library.marks.each { |mark| FirstUse.watch(mark, library.name) }
            library.step(:watch)&.call
          end
          nil
        end

        # Tells the clients of long conversations (WebSockets of Action Cable) to go elsewhere. To be called again and
        # again until it returns true.
        #
        # @return [Boolean] whether none is left
        def say_goodbye = steps(:say_goodbye).map { |_, step| step.call }.all?

        # In a process that is about to end: what the libraries have queued in it is done.
        #
        # @param seconds [Float] at most
        # @yieldparam library [String] @yieldparam unfinished [String] what was not done in time
        # @return [nil]
        def before_exit(seconds)
          steps(:before_exit).each do |name, step|
            unfinished = step.call(seconds)
            yield name, unfinished.join(", ") if unfinished.any?
          end
          nil
        end

        # Runs the block, which forks, and around it what the loaded libraries need: before the fork, then in
        # parent and child, even where the block raises. It is to be the innermost: after what the user has for
        # before a fork, and before what he has for after one.
        #
        # @param strict [Boolean] whether not to fork, now or ever, if a library cannot be made ready. Otherwise
        #   the fork goes on without it.
        # @param defer [Boolean] whether the child does its part not at once but in {settle}
        # @param prepared [Array<String>] the names of those that the user's hooks take care of
        # @param on_failure [#call, nil] is told the library's name and the error of what went wrong and was
        #   lived with
        # @yieldreturn [Object] whatever the fork returns, in both processes
        # @return what the block returned
        # @raise [Unsafe] with strict, and nothing was forked
        def around_fork(strict: false, defer: false, prepared: [], on_failure: nil, &fork)
          preparation = Preparation.new(Known.loaded, on_failure, prepared: prepared)
          preparation.around(strict, defer ? ->(rest) { @owed = rest } : nil, &fork)
        end

        # In a child of {around_fork} with defer.
        #
        # @return [nil]
        def settle
          owed = @owed
          @owed = nil
          owed&.call
          nil
        end

        # @param location [String] "file:line" of a Ruby thread's block
        # @return [String, nil] the library that has this thread again in each child
        def reviving(location) = Known.loaded.find { |library| library.revives?(location) }&.name

        # @param name [String] a gem's
        # @return [String, nil] what its row says the user must do
        def advice(name)
          return unless Known.names.include?(name) && Known.loaded?(name)

          Known.library(name).rule&.advice
        end

        # @param comm [String] a native thread's name, /proc/self/task/*/comm
        # @return [String, nil] the library that starts threads of this name
        def of_thread(comm) = Known.loaded.find { |library| library.thread?(comm) }&.name

        private

        # @return [Array<Array(String, Proc)>]
        def steps(name)
          Known.loaded.filter_map { |library| [library.name, library.step(name)] if library.step(name) }
        end
      end
    end
  end
end
