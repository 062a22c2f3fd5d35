# frozen_string_literal: true

require "pando/fork_safety/libraries/constants"
require "pando/fork_safety/libraries/rule"

module Pando
  module ForkSafety
    module Libraries
      # The DSL of the rows in known/*.rb. The first rule that applies counts. Each says what happens at a fork
      # (`note`), what the user must do (`advice`, required with refused) and the source (`source`).
      #
      #     describe "sequel" do
      #       handled note: "Pando closes its connections before the fork.", source: "doc/fork_safety.rdoc"
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

        # The library handles a fork by itself.
        def fine(**facts) = rule(:fine, **facts)
        # Pando runs the blocks below around the fork, as with limits_reforking.
        def handled(**facts) = rule(:handled, **facts)
        # The library works, but Pando does not promote a worker that has used it, see {unsafe_after} and {threads}.
        def limits_reforking(**facts) = rule(:limits_reforking, **facts)
        # Pando promotes no worker that uses it until the user has done what `advice` says.
        # @param used [Proc, nil] whether this process uses it now; nil: it always does. If only its threads matter,
        #   the audit refuses them, and this is `-> { false }`.
        def refused(advice:, used: nil, **facts) = rule(:refused, advice: advice, used: used, **facts)
        # The sources do not say.
        def unknown(**facts) = rule(:unknown, **facts)

        # Runs in the forking process.
        def before_fork(&block) = @steps[:before_fork] = block
        # Runs in the forking process, after the fork or when it failed.
        def in_parent(&block) = @steps[:in_parent] = block
        # Runs in the child.
        def in_child(&block) = @steps[:in_child] = block

        # Ends long-lived client connections that no child can take over, and tells the clients. It is called again
        # until it returns true, when none is left. Returns a Boolean.
        def say_goodbye(&block) = @steps[:say_goodbye] = block
        # Runs in a process that is about to end. The block gets a number of seconds, finishes what is queued, and
        # returns what did not end in time, an Array of Strings.
        def before_exit(&block) = @steps[:before_exit] = block
        # Runs once the app is loaded, if the library is loaded by then.
        def watch(&block) = @steps[:watch] = block

        # A worker finishes work that the library queues inside the process before it leaves, see {QueuedWork}.
        #
        # @param count [#call] takes a time in monotonic seconds; returns how many pieces run, wait or are due by then
        # @param names [#call] the names of all pieces that would be lost if the process ended now, also of later ones
        def queues(count:, names:) = @queued.merge!(count: count, names: names)

        # Sends what the library has buffered, before a worker leaves.
        # @yieldparam seconds [Float] the time it may take
        def flush(&block) = @queued[:flush] = block

        # The names of the native threads that it starts.
        # @param unsafe [Boolean] whether none of them may be alive at a fork
        def threads(names, unsafe: false)
          @thread_names = names
          @unsafe_threads = unsafe
        end

        # Its Ruby threads come back in a child: the library starts them on its next use, or the blocks above do.
        #
        # @param at [Regexp] matches "file:line" of such a thread's block
        # @param since [String, nil] the first version in which they do
        def revives_threads(at:, since: nil)
          @revived_threads = at
          @revived_since = since && Gem::Version.new(since)
        end

        # The first call of this method makes a process unsafe to fork.
        # @param before [String, nil] the first version in which it does not
        def unsafe_after(constant, method_name, because:, singleton: false, before: nil)
          @marks << Library::Mark.new(constant: constant, method_name: method_name, singleton: singleton,
                                      before: before, reason: because)
        end

        private

        # @param through [Array<String>] one of these libraries must be loaded too, or be ready to autoload
        # @param given [String] a condition, for people
        # @param condition [Proc] the same as code
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
