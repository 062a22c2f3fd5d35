# frozen_string_literal: true

require "support/command_line"
require "support/swarm/contestants"

module Bench
  module Swarm
    # The command line of bench/swarm.
    class Options
      include CommandLine

      POSITIVE = /\A[1-9]\d{0,6}\z/
      WHOLE = /\A\d{1,4}\z/
      SERVERS = %w[pando-auto pando-off preloaded preloaded-jemalloc].freeze
      SETTINGS = ["rollout canary: { requests: 20, seconds: 0.5, longest: 3 }", "log_format :json"].freeze
      QUICK = { jobs: 300, kills: 2 }.freeze
      COUNTS = { jobs: "of each node", nodes: "processes", threads: "of each", seed: "of the jobs",
                 time_scale: "seconds of production that one of the benchmark stands for" }.freeze
      SAMPLES = 100 # the most memory samples in one run
      LEAST = 10 # jobs of each thread between two samples, at least

      attr_reader :servers, :jobs, :nodes, :threads, :seed, :kills, :results, :settings,
                  :time_scale

      def initialize(arguments)
        @servers = SERVERS
        @jobs = 10_000
        @nodes = 4
        @threads = 5
        @seed = 1
        @kills = 12
        @time_scale = 1
        @settings = SETTINGS.dup
        @results = File.expand_path("../../results/swarm", __dir__)
        read(arguments)
      end

      def report_only? = @report || false
      def again? = @again || false
      def slice = [total / SAMPLES / lanes, LEAST].max * lanes
      def lanes = @nodes * @threads
      def total = @jobs * @nodes / lanes * lanes

      # @return [String] name of the file with a contestant's figures
      def id(name)
        [name, "#{@nodes}x#{@threads}", @jobs, ("scale#{@time_scale}" if @time_scale > 1)].compact.join("-")
      end

      private

      def program = "bench/swarm"

      def parser
        @parser ||= OptionParser.new("Usage: #{program} [options]") do |options|
          servers_of(options, Contestants::ALL.keys)
          how_much(options)
          options.on("--setting LINE", "of Pando's configuration; several times") { |line| @settings << line }
          outcome(options)
        end
      end

      def how_much(options)
        numbers_of(options, COUNTS, POSITIVE)
        numbers_of(options, { kills: "nodes killed at the end" }, WHOLE)
        options.on("--quick", "a trial: #{QUICK.map { |name, number| "#{number} #{name}" }.join(", ")}") do
          QUICK.each { |name, number| instance_variable_set(:"@#{name}", number) }
        end
      end

      def outcome(options)
        options.on("--results FOLDER", "what was measured there is not measured again " \
                                       "(default bench/results/swarm)") do |path|
          @results = File.expand_path(path)
        end
        options.on("--again", "measure it again all the same") { @again = true }
        options.on("--report", "no measurement: the report of what is there") { @report = true }
        options.on("--check", "exit 1 if a requirement of docs/benchmarks.md is missed") { @check = true }
        options.on("--ruby PATH", "to run on; this: the one at hand (default: one with YJIT)")
      end
    end
  end
end
