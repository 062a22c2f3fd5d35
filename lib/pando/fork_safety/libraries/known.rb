# frozen_string_literal: true

require "pando/fork_safety/finding"
require "pando/fork_safety/libraries/active_record_pools"
require "pando/fork_safety/libraries/constants"

module Pando
  module ForkSafety
    module Libraries
      # What applies to a library from one version (inclusive) up to another (exclusive), optionally under a
      # condition.
      Rule = Struct.new(:verdict, :since, :before, :given, :condition, :note, :advice, :source, :used,
                        keyword_init: true) do
        def holds?(version) = within?(version) && (condition.nil? || condition.call)

        # @return [Boolean] whether to refuse a fork of this process now
        def refuses? = verdict == :refused && (used.nil? || used.call)

        private

        def within?(version)
          return !(since || before) unless version

          release = version.release
          (since.nil? || release >= Gem::Version.new(since)) && (before.nil? || release < Gem::Version.new(before))
        end
      end

      # One row of the table: how to recognize a library, a rule for each range of its versions, and the blocks to
      # run around a fork. Declared in known/*.rb and constant afterwards. The first rule that applies counts. Each says
      # what happens at a fork (`note`), what the user must do (`advice`, required with refused) and the source
      # (`source`).
      #
      #     describe "sequel", constant: "Sequel::Database" do
      #       handled note: "Pando closes its connections before the fork.", source: "doc/fork_safety.rdoc"
      #       before_fork { Sequel::DATABASES.each(&:disconnect) }
      #     end
      class Library
        # A first call that makes a process unsafe to fork.
        Mark = Struct.new(:constant, :method_name, :singleton, :before, :reason, keyword_init: true)

        # How to recognize some of its threads, from one version on.
        ThreadPattern = Struct.new(:pattern, :since) do
          def match?(text, library) = pattern.match?(text) && within?(library.version)

          private

          def within?(version) = since.nil? || version.nil? || version.release >= Gem::Version.new(since)
        end

        attr_reader :name, :constant, :rules

        # @param constant [String] defined once the library is loaded
        # @param tested [Boolean] whether a test runs the real gem
        def initialize(name, constant, tested: false, &declaration)
          @name = name
          @tested = tested
          @constant = constant
          @rules = []
          @marks = []
          @steps = {}
          @queues = {}
          instance_exec(&declaration)
        end

        # The verdicts, see {Entry}. With `handled` and `limits_reforking`, Pando runs the blocks below.
        def fine(**facts) = declare(:fine, **facts)
        def handled(**facts) = declare(:handled, **facts)
        # See {unsafe_after} and {unsafe_threads}.
        def limits_reforking(**facts) = declare(:limits_reforking, **facts)
        # @param used [Proc, nil] whether this process uses it now; nil: it always does. If only its threads matter,
        #   the audit refuses them, and this is `-> { false }`.
        def refused(advice:, used: nil, **facts) = declare(:refused, advice: advice, used: used, **facts)
        def unknown(**facts) = declare(:unknown, **facts)

        # Runs in the forking process.
        def before_fork(&block) = @steps[:before_fork] = block
        # Runs in the forking process, after the fork or when it failed.
        def in_parent(&block) = @steps[:in_parent] = block
        # Runs in the child.
        def in_child(&block) = @steps[:in_child] = block

        # Ends long-lived client connections that no child can take over, and tells the clients. It is called again
        # until it returns true, when none is left. Returns a Boolean.
        def say_goodbye(&block) = @steps[:say_goodbye] = block
        # Closes long-lived client connections that are still open when a worker ends, after the user's last hook.
        # The block is told whether the server stops (false: the worker is replaced), and returns whether there were
        # any.
        def hang_up(&block) = @steps[:hang_up] = block
        # Runs in a process that is about to end. The block gets a number of seconds, finishes what is queued, and
        # returns what did not end in time, an Array of Strings.
        def before_exit(&block) = @steps[:before_exit] = block
        # Runs once the app is loaded, and before each fork that Pando prepares: the library may be loaded late.
        def watch(&block) = @steps[:watch] = block

        # A worker finishes work that the library queues inside the process before it leaves, see {QueuedWork}.
        #
        # @param count [#call] takes a time in monotonic seconds; returns how many pieces run, wait or are due by then
        # @param names [#call] the names of all pieces that would be lost if the process ended now, also of later ones
        def queues(count:, names:) = @queues.merge!(count: count, names: names)

        # Sends what the library has buffered, before a worker leaves.
        # @yieldparam seconds [Float] the time it may take
        def flush(&block) = @queues[:flush] = block

        # @param names [Regexp] matches those of its native threads, none of which may be alive at a fork
        def unsafe_threads(names) = @unsafe_threads = names

        # Its Ruby threads come back in a child: the library starts them on its next use, or the blocks above do.
        #
        # @param at [Regexp] matches "file:line" of such a thread's block
        # @param since [String, nil] the first version in which they do
        def revives_threads(at:, since: nil) = @revived_threads = ThreadPattern.new(at, since)

        # Its own fork hooks end these native threads and start them again on both sides.
        #
        # @param names [Regexp] see {Audit::NativeThread#comm}
        # @param since [String] the first version in which they do
        def ends_native_threads(names, since:) = @ended_threads = ThreadPattern.new(names, since)

        # The first call of this method makes a process unsafe to fork.
        # @param before [String, nil] the first version in which it does not
        def unsafe_after(constant, method_name, because:, singleton: false, before: nil)
          @marks << Mark.new(constant: constant, method_name: method_name, singleton: singleton, before: before,
                             reason: because)
        end

        def loaded? = !Constants.find(constant).nil?

        # @return [Boolean] whether at least its outermost module is loaded: Rails autoloads ActiveRecord::Base
        def begun? = !Constants.find(constant[/\A\w+/]).nil?

        # @return [Gem::Version, nil]
        def version
          specification = Gem.loaded_specs[name]
          return specification.version if specification

          text = Constants.version_near(constant)
          Gem::Version.new(text) if text && Gem::Version.correct?(text)
        end

        def rule(version = self.version) = @rules.find { |rule| rule.holds?(version) }

        def marks
          version = self.version
          @marks.select { |mark| mark.before.nil? || version.nil? || version.release < Gem::Version.new(mark.before) }
        end

        def tested? = @tested

        def step(name) = @steps[name]

        def queue(name) = @queues[name]

        def handled? = @steps.any? && %i[handled limits_reforking].include?(rule&.verdict)

        # @return [Boolean] whether that thread belongs to the library and comes back in each child
        def revives?(location) = @revived_threads&.match?(location, self) || false

        # @return [Boolean] whether it ends native threads of that name itself before a fork
        def ends_native_thread?(name) = @ended_threads&.match?(name, self) || false

        def unsafe_threads? = !@unsafe_threads.nil?
        def unsafe_thread?(name) = @unsafe_threads.match?(name)

        private

        # @param through [Array<String>] one of these libraries must be loaded too, or be ready to autoload
        # @param given [String] a condition, for people
        def declare(verdict, through: nil, given: nil, condition: nil, **facts)
          if through
            given ||= "through #{through.join(" or ")}"
            condition ||= -> { through.any? { |name| Known.library(name).begun? } }
          end
          @rules << Rule.new(verdict: verdict, given: given, condition: condition, **facts).freeze
        end
      end

      # What Pando knows about the loaded version of one library. A value.
      #
      #   name     String: the gem's name
      #   version  String or nil
      #   verdict  :fine (handles a fork by itself), :handled (Pando prepares it), :limits_reforking (Pando does not
      #            promote a worker that has used it), :refused (Pando promotes no worker that uses it until you do what
      #            `advice` says) or :unknown (the sources do not say)
      #   note     String: what happens at a fork, for people
      #   advice   String or nil: what to do, usually a line for the config file
      #   source   String or nil: the source of this knowledge
      Entry = Struct.new(:name, :version, :verdict, :note, :advice, :source) do
        def self.of(library)
          version = library.version
          rule = library.rule(version)
          return new(library.name, version, :unknown, "Pando knows nothing about this version.") unless rule

          new(library.name, version, rule.verdict, rule.note, rule.advice, rule.source)
        end

        def initialize(name, version, ...)
          super(name, version&.to_s, ...)
          freeze
        end

        # @return [Finding, nil]
        def finding
          kind = { refused: :library_refuses_refork, unknown: :library_unknown }[verdict] or return

          Finding.new(kind, subject: name, message: "#{self}: #{note}", advice: advice,
                            details: { version: version, source: source }.compact)
        end

        # @return [Hash{Symbol => String}] for JSON
        def to_h = super.compact

        def to_s = [name, version].compact.join(" ")
      end

      # From libraries that need nothing to unknown ones.
      Entry::VERDICTS = %i[fine handled limits_reforking refused unknown].freeze

      # The table of libraries. Its rows are declared in known/*.rb, grouped by purpose; {Library} has the DSL.
      # Pando prepares libraries for a fork in the order of the rows. So the row of a library that manages
      # connections comes before the rows of its drivers.
      module Known
        # Environment variables that libraries read when they start.
        ENVIRONMENT = { "GRPC_ENABLE_FORK_SUPPORT" => "1" }.freeze

        @rows = {}

        class << self
          def all = @rows.values

          # @return [Array<Library>] the rows of libraries that are loaded now
          def loaded = all.select(&:loaded?)

          def loaded?(name) = library(name).loaded?

          # @raise [KeyError] there is no such row
          def library(name) = @rows.fetch(name)

          def names = @rows.keys

          # Adds rows: the block calls {describe}.
          def define(&) = instance_exec(&)

          # Adds one row.
          #
          # @param constant [String] defined once the library is loaded
          # @param tested [Boolean] whether a test runs the real gem
          def describe(name, constant:, tested: false, &declaration)
            raise ArgumentError, "#{name} has a row already" if @rows.key?(name)

            @rows[name] = Library.new(name, constant, tested: tested, &declaration)
          end
        end
      end

      # The gems that have loaded a C extension and that Pando knows nothing about. They may keep threads,
      # locks and connections where Ruby cannot see them.
      module Native
        NOTE = "It has a C extension, and Pando does not know what that does around a fork."
        # These only compute: their compiled files import nothing that makes threads, sockets or epoll sets (nm -D,
        # in the versions of docs/libraries.md).
        HARMLESS = %w[
          bigdecimal cgi date digest erb etc fiddle io-console io-wait json msgpack nkf openssl prism psych puma racc
          rbs ripper stringio strscan zlib
        ].freeze
        private_constant :NOTE

        class << self
          def unknown
            names = loaded
            (names.keys - Known.names - HARMLESS - ["pando"]).sort.map do |name|
              Entry.new(name, names[name], :unknown, NOTE)
            end
          end

          # @return [Hash{String => Gem::Version}] the gems from whose directories an extension was loaded
          def loaded
            specifications = Gem.loaded_specs.each_value.to_h { |one| [one.full_name, one] }
            extensions = $LOADED_FEATURES.select { |path| path.end_with?(".so") }
            extensions.each_with_object({}) do |path, found|
              path.split("/").each do |part|
                specification = specifications[part] or next
                found[specification.name] = specification.version
              end
            end
          end
        end
      end
    end
  end
end

%w[data clients telemetry other].each do |group|
  require "pando/fork_safety/libraries/known/#{group}"
end
