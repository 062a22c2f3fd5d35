# frozen_string_literal: true

require "support/command_line"
require "support/lab/apps"
require "support/lab/servers"
require "support/lab/setup"
require "support/lab/variant"

module Bench
  module Lab
    # The command line of bench/lab.
    class Options
      include CommandLine

      POSITIVE = /\A[1-9]\d{0,6}\z/
      WHOLE = /\A\d{1,6}\z/
      ALLOCATORS = %w[default jemalloc].freeze
      JITS = { "yjit" => true, "plain" => false }.freeze
      SERVERS = %w[pando-auto pando-off pando-list pitchfork-off pitchfork-list puma puma-fork].freeze
      TABLE = %w[puma puma+jemalloc puma-threads puma-threads+jemalloc pitchfork-list pitchfork-list+jemalloc
                 pitchfork-wide+jemalloc pitchfork-long+jemalloc pando-auto].freeze
      QUICK = { requests: 300, kills: 1, methods: 5_000 }.freeze
      COUNTS = { requests: "of each worker", workers: "worker processes", clients: "that ask at a time",
                 repeat: "rounds", seed: "of the traffic", methods: "of the constant-caches app",
                 time_scale: "seconds of production that one of the lab stands for" }.freeze
      SAMPLES = 160 # the most memory samples in one run
      LEAST = 25 # requests of each client between two samples, at least

      attr_reader :apps, :servers, :workers, :requests, :clients, :seed, :kills, :methods, :repeat, :results,
                  :pando_root, :settings, :redmine, :minutes

      def initialize(arguments)
        @apps = %w[rails]
        @servers = SERVERS
        @allocators = %w[default]
        @jits = %w[yjit]
        @requests = 10_000
        @kills = 3
        @workers, @clients, @seed, @methods = Setup::DEFAULTS.values_at(:workers, :clients, :seed, :app_methods)
        @time_scale = 1
        @redmine = ENV.fetch("LAB_REDMINE", nil)
        @repeat = 1
        @results = File.expand_path("../../../tmp/lab", __dir__)
        @pando_root = Bench::Servers::Pando::ROOT
        @settings = Setup::DEFAULTS[:settings].dup
        read(arguments)
        usage("--minutes is for --together") if @minutes && !together?
      end

      def report_only? = @report || false
      def again? = @again || false
      def together? = @together || false
      def total = @requests * @workers
      def slice = [total / SAMPLES, LEAST * @clients].max

      # @return [Array<Variant>] in the order of measurement: round by round, all servers in turn
      def variants
        (1..@repeat).to_a.product(@apps, @jits, contestants).map do |round, app, jit, (server, allocator)|
          Variant.new(app: app, server: server, allocator: allocator, yjit: JITS.fetch(jit), round: round, tag: @tag,
                      time_scale: @time_scale, each_serves: @requests, setup: setup(app, server))
        end
      end

      private

      def setup(app, server)
        Setup.of(app: app, server: server, workers: @workers, clients: @clients, seed: @seed, app_methods: @methods,
                 settings: @settings, checkout: (@pando_root unless @pando_root == Bench::Servers::Pando::ROOT))
      end

      def program = "bench/lab"

      # @return [Array<Array(String, String)>] servers and allocators; a server may specify its own
      def contestants
        @allocators.product(@servers).map do |allocator, name|
          server, own = name.split("+")
          [server, own || allocator]
        end.uniq
      end

      def parser
        @parser ||= OptionParser.new("Usage: #{program} [options]") do |options|
          what(options)
          how_much(options)
          pando(options)
          outcome(options)
        end
      end

      def what(options)
        list(options, "--app LIST", Apps.names, "the apps (default rails; all: every one)") { |names| @apps = names }
        contest(options)
        list(options, "--allocators LIST", ALLOCATORS, "default: the server's own (default)") do |names|
          @allocators = names
        end
        list(options, "--jits LIST", JITS.keys, "yjit (default) or plain") { |names| @jits = names }
      end

      def contest(options)
        names = Servers::ALL.keys
        options.on("--servers LIST", Array, "NAME or NAME+jemalloc (default #{SERVERS.join(",")})") do |list|
          @servers = list == %w[all] ? names : known(list, names + names.map { |name| "#{name}+jemalloc" })
        end
        options.on("--table", "those of the README's table, together: #{TABLE.join(",")}") do
          @servers = TABLE
          @together = true
        end
      end

      def list(options, flag, all, meaning)
        options.on(flag, Array, meaning) { |names| yield(names == %w[all] ? all : known(names, all)) }
      end

      def how_much(options)
        options.on("--redmine PATH", "of a checkout (default $LAB_REDMINE, or Debian's newest)") do |path|
          @redmine = path
        end
        numbers_of(options, COUNTS, POSITIVE)
        numbers_of(options, { kills: "workers killed at the end" }, WHOLE)
        options.on("--together", "all servers of a round at a time, in turn") { @together = true }
        options.on("--minutes N", POSITIVE, "of a round of --together: all end after as many requests") do |number|
          @minutes = number.to_i
        end
        options.on("--quick", "a trial: #{QUICK.map { |name, number| "#{number} #{name}" }.join(", ")}") do
          QUICK.each { |name, number| instance_variable_set(:"@#{name}", number) }
        end
      end

      def pando(options)
        options.on("--pando-root PATH", "of the checkout that Pando's servers run from (default: this)") do |path|
          @pando_root = File.expand_path(path)
        end
        options.on("--tag NAME", /\A[\w.]+\z/, "what the report calls that Pando") { |name| @tag = name }
        options.on("--setting LINE", "of Pando's configuration; several times") { |line| @settings << line }
      end

      def outcome(options)
        options.on("--results FOLDER", "what was measured there is not measured again (default tmp/lab)") do |path|
          @results = File.expand_path(path)
        end
        options.on("--again", "measure it again all the same") { @again = true }
        options.on("--report", "no measurement: the report of what is there") { @report = true }
        options.on("--check", "exit 1 if a requirement of docs/lab.md is missed") { @check = true }
        options.on("--ruby PATH", "to run on; this: the one at hand (default: one with YJIT)")
      end
    end
  end
end
