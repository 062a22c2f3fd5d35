# frozen_string_literal: true

require "support/lab/variant"
require "support/server"
require "support/swarm/brokers"

module Bench
  module Swarm
    # The programs that run the jobs. Each has the same number of processes and threads.
    module Contestants
      SUPPORT = __dir__
      ROOT = File.expand_path("../../..", __dir__)

      # The common part: they have no listener, and are ready when their processes exist.
      class Contestant < Server
        attr_reader :label

        def initialize(label:, threads:, **options)
          super(app: nil, **options)
          @label = label
          @threads = threads
        end

        private

        def answers? = true
      end

      # Pando with its defaults, except for the compared settings and the canary: a minute here stands for hours, so a
      # canary must be able to pass in less than its 10 seconds.
      class Pando < Contestant
        # @param runner [Symbol] of the nodes @param boot [String] the file that they load
        # @param settings [Array<String>] lines of the configuration
        def initialize(refork:, runner: :sidekiq, boot: "boot.rb", settings: [], **options)
          super(**options)
          @runner = runner
          @boot = File.join(SUPPORT, boot)
          @lines = ["refork #{refork}", *settings]
        end

        def command
          node = "node :#{@runner}, count: #{@workers}, concurrency: #{@threads}, require: #{@boot.inspect}"
          config = File.join(@folder, "swarm.rb")
          File.write(config, [*@lines, node].map { |line| "#{line}\n" }.join)
          [Gem.ruby, "-I", File.join(ROOT, "lib"), File.join(ROOT, "exe/pando"), "swarm", "-c", config,
           "-e", "production"]
        end

        def worker_title = /\Apando #{@runner} \d+ gen (?<generation>\d+)/
        def generation_title = /\Apando (?:mold|#{@runner} \d+) gen (?<generation>\d+)/
      end

      # See preloaded.rb.
      class Preloaded < Contestant
        def initialize(allocator: nil, **options)
          super(**options.except(:settings))
          @environment = @environment.merge("LD_PRELOAD" => Lab::Jemalloc.path) if allocator == :jemalloc
        end

        def command = [Gem.ruby, File.join(SUPPORT, "preloaded.rb"), @workers.to_s, @threads.to_s]
        def worker_title = /\Apreloaded node \d+/
      end

      # Karafka's own supervisor, see karafka.rb.
      class KarafkaSwarm < Contestant
        def initialize(**options) = super(**options.except(:settings))

        def command = [Gem.ruby, "-e", 'load Gem.bin_path("karafka", "karafka")', "swarm"]
        def worker_title = /\Akarafka swarm node/
      end

      ALL = {
        "pando-auto" => [Pando, { label: "Pando, auto", refork: ":auto" }],
        "pando-off" => [Pando, { label: "Pando, off", refork: "false" }],
        "preloaded" => [Preloaded, { label: "forked from a preloaded parent" }],
        "preloaded-jemalloc" => [Preloaded, { label: "the same, with jemalloc", allocator: :jemalloc }],
        "pando-karafka" => [Pando, { label: "Pando with Karafka, auto", refork: ":auto", runner: :karafka,
                                     boot: "karafka.rb" }],
        "karafka-swarm" => [KarafkaSwarm, { label: "Karafka Swarm" }]
      }.freeze

      # @param name [String] one of ALL
      # @return [Contestant] not started yet
      def self.build(name, **options)
        kind, own = ALL.fetch(name)
        kind.new(**own, **options)
      end

      # @return [Class] of Brokers
      def self.broker(name) = name.include?("karafka") ? Brokers::Kafka : Brokers::Redis

      def self.label(name) = ALL.fetch(name).last.fetch(:label)
    end
  end
end
