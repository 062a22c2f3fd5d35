# frozen_string_literal: true

require "pando/config/types"

module Pando
  class Config
    # One kind of job node, from a `node` line of the config:
    #
    #   node :sidekiq, count: 4, concurrency: 5, queues: %w[default], require: "./jobs.rb"
    #   node(:custom, count: 1) { MyRunner.new }
    #
    #   name         String; the name of the runner, unless `name:` sets another
    #   runner       Symbol, one of NodeLine::RUNNERS; nil: the block makes the runner
    #   factory      Proc, the block of the line; nil in a process that has not run the file
    #   count        nodes
    #   concurrency  jobs that a node runs at once
    #   queues       Array<String>
    #   files        Array<String>, absolute: what `require:` names
    #   timeout      seconds without progress while jobs run, after which a node is replaced; nil: no limit
    #   quiet_timeout seconds that running jobs get to finish when their node is replaced or about to be forked
    #   exclusive    whether a node must be gone before its successor starts
    #   shared       whether its first mold is forked from the mold of the first kind, which has loaded the same app
    #   refork, memory  as the settings of that name, for this kind
    #   surge, unavailable, canary  as those of `rollout`, for this kind
    #   options      Hash{Symbol => Object}: the line's other keywords, which belong to the runner
    #   source       where the line is
    #
    # Every process has all kinds. They are frozen.
    # rubocop:disable-next Lint/StructNewOverride -- `count` is what users call the number of nodes
    NodeKind = Struct.new(:name, :runner, :factory, :count, :concurrency, :queues, :files, :timeout, :quiet_timeout,
                          :exclusive, :shared, :refork, :memory, :surge, :unavailable, :canary, :options, :source,
                          keyword_init: true)

    # A `node` line of a config file: its keywords, and the NodeKind that it declares. Keywords that are not in KEYWORDS
    # belong to the runner.
    #
    # @api private
    class NodeLine
      # A keyword that any kind of node takes.
      Keyword = Struct.new(:type, :default)

      NAME = /\A[a-z][a-z0-9_-]{0,31}\z/
      # What processes of Pando are called, which no pool and no kind of nodes may be.
      RESERVED = %w[mold worker reactor monitor service].freeze

      # When Pando reforks a kind of node. Here a list needs no `after:`.
      class Refork < Types::Refork
        def cast(value = nil, **) = value.is_a?(Array) ? { after: After.new.cast(value) } : super
        def write(value) = value.is_a?(Hash) ? value[:after].inspect : super
      end

      # Keywords that do not apply with `queue_file: true`: config/queue.yml says them.
      IN_QUEUE_FILE = %i[queues concurrency].freeze

      INHERIT = Object.new.freeze # take the value of the setting
      TIMEOUT = 600.0

      KEYWORDS = {
        name: Keyword.new(Types::Text.new("a name such as mailers", NAME), nil),
        count: Keyword.new(Types::Whole.new(1..1024), 1),
        concurrency: Keyword.new(Types::Whole.new(1..1024), 5),
        queues: Keyword.new(Types::Texts.new("a list of queues", least: 1), %w[default].freeze),
        require: Keyword.new(Types::Texts.new("a list of files"), [].freeze),
        timeout: Keyword.new(Types::OrOff.new(Types::Seconds.new), INHERIT),
        quiet_timeout: Keyword.new(Types::Seconds.new, 60.0),
        exclusive: Keyword.new(Types::Truth.new, INHERIT),
        shared: Keyword.new(Types::Truth.new, false),
        refork: Keyword.new(Refork.new, INHERIT),
        memory: Keyword.new(Types::OrOff.new(Types::Bytes.new((8 * (1024**2))..)), INHERIT),
        surge: Keyword.new(Types::Whole.new(0..1024), INHERIT),
        unavailable: Keyword.new(Types::Whole.new(0..1024), INHERIT),
        canary: Keyword.new(Types::Canary.new, INHERIT)
      }.freeze

      ANYTHING = Types::Anything.new

      # The runners that come with Pando, and the types of their own keywords; nil: the library checks its keywords
      # itself. They stand here, so that Pando finds a mistake before it loads any job library. A new runner adds a line
      # here and a file in swarm/runners/.
      RUNNERS = {
        sidekiq: { reliable: Types::Truth.new, weights: Types::Weights.new },
        karafka: {},
        solid_queue: { polling_interval: Types::Seconds.new, dispatchers: Types::Whole.new(0..1024),
                       killed_jobs: Types::Choice.new(:again, :fail), queue_file: Types::Truth.new },
        good_job: nil,
        bunny: { consumer: ANYTHING, connection: ANYTHING, prefetch: Types::Whole.new(0..65_535), declare: ANYTHING,
                 on_error: Types::Choice.new(:reject, :requeue) },
        resque: { redis: ANYTHING, interval: Types::Seconds.new, job_timeout: Types::Seconds.new }
      }.freeze

      # Runners of which two nodes with the same number must never run at once.
      EXCLUSIVE = %i[karafka].freeze
      # Runners whose library comes with the Rails app that `require:` loads, instead of being loaded before it.
      IN_RAILS = %i[solid_queue good_job].freeze

      attr_reader :source, :runner

      # @param runner [Object] as written: a Symbol @param said [Hash{Symbol => Object}] @param factory [Proc, nil]
      def self.read(runner, said, factory, source)
        new(runner, said, factory, source).tap do |line|
          line.check
          line.read_options
        end
      end

      def initialize(runner, said, factory, source)
        @runner = runner
        @factory = factory
        @source = source
        mine, @options = said.partition { |key, _| KEYWORDS.key?(key) }.map(&:to_h)
        @said = mine.to_h { |key, value| [key, cast(key, value)] }
      end

      def name = @said[:name] || @runner.name

      def check
        refuse("needs a name such as :sidekiq") unless @runner.is_a?(Symbol) && @runner.name.match?(NAME)
        refuse("has a name that Pando uses itself: give it another one") if RESERVED.include?(name.to_s)
        ours = RUNNERS.key?(@runner)
        if @factory && ours
          refuse("has a block, but its runner comes with Pando: leave the block out, or rename your own runner")
        end
        return if @factory || ours

        known = RUNNERS.keys.map(&:inspect).join(", ")
        refuse("is not a runner that comes with Pando (#{known}), and has no block that makes one." \
               "#{Suggestion.for(@runner.name, RUNNERS.keys)}")
      end

      # Reads the keywords that belong to the runner. One that is nil counts as left out.
      def read_options
        known = RUNNERS[@runner] or return

        wrong = (@options.keys - known.keys).first
        refuse("has no keyword #{wrong}:.#{Suggestion.for(wrong, [*known.keys, *KEYWORDS.keys])}") if wrong
        @options = @options.compact.to_h { |key, value| [key, cast(key, value, known.fetch(key))] }
        refuse("needs consumer: \"YourClass\"") if @runner == :bunny && !@options.key?(:consumer)
        check_weights
        refuse_beside_queue_file if @options[:queue_file]
      end

      # @param config [Config] its settings apply to keywords that the line leaves out
      def kind(config)
        refuse_web if web?(config)
        NodeKind.new(name: name, runner: (@runner unless @factory), factory: @factory, source: source,
                     options: @options.freeze, files: value(:require).map { |file| locate(file, config) },
                     timeout: timeout(config), exclusive: inherit(:exclusive, !@factory && EXCLUSIVE.include?(@runner)),
                     refork: inherit(:refork, config.refork), memory: memory(config),
                     **rollout(config),
                     **%i[count concurrency queues quiet_timeout shared].to_h { |key| [key, value(key)] }).freeze
      end

      # The part of the line that the monitor needs, for a process that must not run the file.
      def to_h
        said = @said.except(:require).to_h { |key, value| [:"said_#{key}", KEYWORDS.fetch(key).type.text(value)] }
        { runner: @runner, block: (1 if @factory), source: source, **said }.compact
      end

      # @param said [Hash{String => String}] the result of #to_h
      def self.from(said)
        keywords = KEYWORDS.keys.to_h { |key| [key, said["said_#{key}"]] }.compact
        runner = RUNNERS.keys.find { |one| one.name == said["runner"] } || :custom
        keywords[:name] ||= said["runner"]
        factory = -> { raise Error, "only the mold has the block" } if said["block"]
        new(runner, keywords, factory, said["source"]).tap(&:check)
      end

      private

      def rollout(config)
        said = { surge: config.rollout_surge, unavailable: config.rollout_unavailable, canary: config.rollout_canary }
        said = said.to_h { |key, otherwise| [key, inherit(key, otherwise)] }
        refuse("surge: cannot be 0 while unavailable: is 0") if said.values_at(:surge, :unavailable) == [0, 0]
        said
      end

      def value(key) = @said.fetch(key) { KEYWORDS.fetch(key).default }

      def inherit(key, otherwise)
        value(key).then { |value| value.equal?(INHERIT) ? otherwise : value }
      end

      # The timeout of requests does not suit jobs. It applies only if the server has no workers.
      def timeout(config)
        meant = config.workers.zero? && !config.default?(:timeout)
        inherit(:timeout, meant ? config.timeout : TIMEOUT)
      end

      def locate(file, config) = file.start_with?(".", "/") ? File.expand_path(file, config.directory) : file

      def cast(key, written, type = KEYWORDS.fetch(key).type)
        type.cast(written)
      rescue Type::Invalid => e
        refuse("#{key}: #{e.message}")
      end

      def check_weights
        strange = @options.fetch(:weights, {}).keys.map(&:to_s) - value(:queues)
        return if strange.empty?

        refuse("weights: #{strange.first} is not one of its queues (#{value(:queues).join(", ")})")
      end

      def refuse_beside_queue_file
        said = [*IN_QUEUE_FILE.select { |key| @said.key?(key) }, *@options.keys.grep(:polling_interval)]
        return if said.empty?

        refuse("has both #{said.first}: and queue_file: true, which takes it from config/queue.yml: leave one out")
      end

      # The pool of the workers has this name, see Server::Kinds.
      def web?(config) = name == WEB && !config.workers.zero?

      # @return [Integer, nil] bytes
      def memory(config)
        inherit(:memory, config.memory_worker).tap do |bytes|
          wrong = HardLimit.obstacle(config.with(memory_worker: bytes))
          refuse(wrong) if wrong
        end
      end

      def refuse_web
        refuse("has the name #{name}, which the workers that serve requests have: give it another one, such as " \
               "name: \"jobs\"")
      end

      def refuse(message) = raise(ConfigError, "#{source}: node #{@runner.inspect} #{message}")
    end
  end
end
