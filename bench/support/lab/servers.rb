# frozen_string_literal: true

require "support/servers/pando"
require "support/servers/pitchfork"
require "support/servers/puma"

module Bench
  module Lab
    # The servers of the lab, by their names on its command line. Each reforks in its own way, or not at all.
    module Servers
      # The list of article 003: growing intervals, then no more reforks.
      GROWING = [500, 750, 1000, 1200, 1400, 1800, 2000, 2200, 2400, 2600, 2800, 3000, 3200, 3400, 3600, 3800, 4000,
                 4200, 4400, 4600].freeze
      LIST = [50, 100, 1000].freeze # the last one repeats, as in the next two lists
      WIDE = [100, 400, 1600].freeze
      LONG = [50, 100, 500, 2000].freeze
      DOUBLING = (0..10).map { |power| 50 << power }.freeze

      # Pando with its defaults, except for the compared settings.
      class Pando < Bench::Servers::Pando
        # @param label [String]
        # @param settings [Array<String>] lines of the configuration
        def initialize(label:, settings: [], **options)
          super(**options)
          @label = label
          @lines = settings
        end

        attr_reader :label

        def command
          super.tap { File.write(File.join(@folder, "pando.rb"), @lines.map { |line| "#{line}\n" }.join) }
        end

        private

        def settings = {}
      end

      # Pitchfork with a list of intervals, or without reforks.
      class Pitchfork < Bench::Servers::Pitchfork
        def initialize(label:, refork_after: nil, **options)
          super(**options)
          @label = label
          @refork_after = refork_after
        end

        attr_reader :label

        def command
          super.tap do
            next unless @refork_after

            File.write(File.join(@folder, "pitchfork.rb"), "refork_after #{@refork_after.inspect}\n", mode: "a")
          end
        end
      end

      # Puma with a common configuration.
      class Puma < Bench::Servers::Puma
        def initialize(label:, **options)
          super(**options)
          @label = label
        end

        attr_reader :label
      end

      # The same with as many threads as in Rails' template.
      class PumaThreads < Puma
        def threads = 3
      end

      # Puma with fork_worker: it reforks all workers from the first one when that has served a thousand requests.
      class PumaForkWorker < Puma
        def command = super.map { |word| word == "--preload" ? "--fork-worker=1000" : word }
      end

      ALL = {
        "pando-auto" => [Pando, { label: "Pando, auto", refork: "auto" }],
        "pando-off" => [Pando, { label: "Pando, off", refork: "off" }],
        "pando-list" => [Pando, { label: "Pando, #{LIST.join(",")}", refork: LIST.join(",") }],
        "pando-growing" => [Pando, { label: "Pando, 20 growing", refork: "#{GROWING.join(",")},off" }],
        "pando-doubling" => [Pando, { label: "Pando, doubling", refork: "#{DOUBLING.join(",")},off" }],
        "pitchfork-off" => [Pitchfork, { label: "Pitchfork, off" }],
        "pitchfork-list" => [Pitchfork, { label: "Pitchfork, #{LIST.join(",")}", refork_after: LIST }],
        "pitchfork-wide" => [Pitchfork, { label: "Pitchfork, #{WIDE.join(",")}", refork_after: WIDE }],
        "pitchfork-long" => [Pitchfork, { label: "Pitchfork, #{LONG.join(",")}", refork_after: LONG }],
        "pitchfork-growing" => [Pitchfork, { label: "Pitchfork, 20 growing", refork_after: [*GROWING, false] }],
        "puma" => [Puma, { label: "Puma, preload" }],
        "puma-threads" => [PumaThreads, { label: "Puma, 3 threads" }],
        "puma-fork" => [PumaForkWorker, { label: "Puma, fork_worker" }]
      }.freeze

      FIXED = %w[pando-off pando-list pando-growing pando-doubling].freeze # the baselines for auto
      HAND_LISTS = %w[pitchfork-list pitchfork-wide pitchfork-long].freeze

      # @param name [String] one of ALL
      # @param pando [Hash] root: path of a checkout, settings: lines
      # @return [Server] not started yet
      def self.build(name, bundle:, pando:, **options)
        kind, own = ALL.fetch(name)
        more = kind <= Pando ? pando : { bundle: bundle }
        kind.new(**own, **more, **options)
      end

      def self.label(name) = ALL.fetch(name).last.fetch(:label)
    end
  end
end
