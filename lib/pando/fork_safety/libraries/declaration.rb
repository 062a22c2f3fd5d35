# frozen_string_literal: true

require "pando/fork_safety/libraries/constants"
require "pando/fork_safety/libraries/rule"

module Pando
  module ForkSafety
    module Libraries
      # The words of the rows in known/*.rb. The first rule that holds counts. Each says what happens at a fork
      # (`note`), what the user must do (`advice`, always with refused) and where that is written (`source`).
      #
      #     describe "sequel" do
      #       handled note: "Its connections are closed before the fork.", source: "doc/fork_safety.rdoc"
      #       before_fork { Sequel::DATABASES.each(&:disconnect) }
      #     end
      #
      # @api private
      class Declaration
        attr_reader :rules, :marks, :steps, :thread_names, :unsafe_threads, :revived_threads, :revived_since, :queued

        def initialize(&block)
          @rules = []
          @marks = []
          @steps = {}
          @queued = {}
          instance_exec(&block)
        end

        # The library copes with a fork by itself.
        def fine(**facts) = rule(:fine, **facts)
        # Pando runs the blocks below around the fork. So it does with limits_reforking.
        def handled(**facts) = rule(:handled, **facts)
        # The library works, but a worker that has used it is not promoted: {unsafe_after} and {threads} say when.
        def limits_reforking(**facts) = rule(:limits_reforking, **facts)
        # No worker is promoted while it is in use, until the user has done what `advice` says.
        # @param used [Proc, nil] whether this process uses it now; none: it always does. Where only its threads are
        #   at stake the audit refuses them, and this is `-> { false }`.
        def refused(advice:, used: nil, **facts) = rule(:refused, advice: advice, used: used, **facts)
        # The sources do not tell.
        def unknown(**facts) = rule(:unknown, **facts)

        # In the forker.
        def before_fork(&block) = @steps[:before_fork] = block
        # In the forker, after the fork or when it failed.
        def in_parent(&block) = @steps[:in_parent] = block
        # In the child.
        def in_child(&block) = @steps[:in_child] = block

        # Ends the conversations with clients that no child can take over: the clients are told. It is called again and
        # again until it returns true, when none is left; its return value is a Boolean.
        def say_goodbye(&block) = @steps[:say_goodbye] = block
        # In a process that is about to end: what is queued in it is done, within the seconds that the block is given.
        # The block returns what did not end in time, an Array of Strings.
        def before_exit(&block) = @steps[:before_exit] = block
        # Once the application is loaded, if the library is there by then.
        def watch(&block) = @steps[:watch] = block

        # Work that it queues inside the process is done before a worker leaves, see {QueuedWork}. Both or neither.
        #
        # @param count [#call] takes a moment in monotonic seconds; how many pieces run, wait or are due by then
        # @param names [#call] what each piece is that would be lost if the process ended now, later ones too
        def queues(count:, names:) = @queued.merge!(count: count, names: names)

        # Sends what it has buffered, before a worker leaves.
        # @yieldparam seconds [Float] that it may take
        def flush(&block) = @queued[:flush] = block

        # The names of the native threads that it starts.
        # @param unsafe [Boolean] whether none of them may live at a fork
        def threads(names, unsafe: false)
          @thread_names = names
          @unsafe_threads = unsafe
        end

        # Its Ruby threads live again in a child: it starts them itself when it is used there, or the blocks above do.
        #
        # @param at [Regexp] matches "file:line" of such a thread's block
        # @param since [String, nil] the version from which on they do
        def revives_threads(at:, since: nil)
          @revived_threads = at
          @revived_since = since && Gem::Version.new(since)
        end

        # Its first use, a call of this method, makes a process unfit to be forked.
        # @param before [String, nil] the version from which on it does not
        def unsafe_after(constant, method_name, because:, singleton: false, before: nil)
          @marks << Library::Mark.new(constant: constant, method_name: method_name, singleton: singleton,
                                      before: before, reason: because)
        end

        private

        # @param through [Array<String>] of which libraries one must be loaded too, or wait to be autoloaded
        # @param given [String] a condition, for a human
        # @param condition [Proc] the same for the machine
        def rule(verdict, through: nil, given: nil, condition: nil, **facts)
          if through
            given ||= "through #{through.join(" or ")}"
            condition ||= -> { through.any? { |name| Known.library(name).begun? } }
          end
          @rules << Rule.new(verdict: verdict, given: given, condition: condition, **facts).freeze
        end
      end
    end
  end
end
