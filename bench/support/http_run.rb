# frozen_string_literal: true

require "tmpdir"
require "support/cpu_time"
require "support/memory"
require "support/servers"
require "support/wrk"

module Bench
  # All servers with one number of workers, started side by side and loaded in turn, so that other work on the machine
  # affects all of them alike. Each round has fresh processes.
  class HTTPRun
    APP = File.expand_path("../apps/hello.ru", __dir__)
    ENVIRONMENT = { "RACK_ENV" => "production", "RUBY_YJIT_ENABLE" => "1" }.freeze
    WARM_UP = 2 # seconds per server and round, enough to compile all hot code
    MEMORY_LOAD = 2

    # @!attribute cpu [Float] microseconds per request
    # @!attribute rate [Float] requests per second
    # @!attribute errors [Integer]
    Sample = Struct.new(:cpu, :rate, :errors, keyword_init: true)

    # @param names [Array<String>] of Servers::ALL
    # @param workers [Integer]
    # @param cases [Array<HTTPCase>]
    # @param options [HTTPOptions]
    def initialize(names, workers, cases, options)
      @names = names
      @workers = workers
      @cases = cases
      @options = options
      @samples = Hash.new { |all, key| all[key] = [] }
      @memory = {}
      @failures = {}
    end

    # @return [Hash{Array(HTTPCase, String) => Array<Sample>}]
    attr_reader :samples

    # @return [Hash{String => Memory}] of each server, running alone, after it has served for a while
    attr_reader :memory

    # @return [Hash{String => String}] by server, why it could not be started and is left out
    attr_reader :failures

    def call
      @names = @names.select { |name| weigh(name) }
      @options.rounds.times { |round| with_all(@names) { |servers| ask(servers, round) } }
      self
    end

    private

    # Runs each server alone, because pages that several servers share would count less in each.
    def weigh(name)
      with_all([name]) do |servers|
        load(servers[name], @cases.first, MEMORY_LOAD)
        @memory[name] = Memory.of(servers[name].pids, servers[name].worker_pids)
      end
    rescue Server::Failed => e
      @failures[name] = e.message.lines.map(&:strip).reject(&:empty?).first(2).join(" ")
      nil
    end

    def with_all(names, started = {}, &block)
      return yield(started) if names.empty?

      Dir.mktmpdir("pando-bench") do |folder|
        server = Servers.build(names.first, app: APP, folder: folder, environment: ENVIRONMENT,
                                            workers: @workers, cores: @options.cores.first)
        server.run { with_all(names.drop(1), started.merge(names.first => server), &block) }
      end
    end

    def ask(servers, round)
      servers.each_value { |server| load(server, @cases.first, WARM_UP) }
      @cases.each do |kind|
        warn "round #{round + 1}: #{kind.name} ..."
        # The order changes, so that the after-effects of one server do not always hit the same next one.
        servers.keys.rotate(round).each do |name|
          sample = measure(servers[name], kind)
          @samples[[kind, name]] << sample if sample
        end
      end
    end

    # @return [Sample, nil] nil: a process has ended and its CPU time is unknown
    def measure(server, kind)
      before = CPUTime.of(server.pids)
      result = load(server, kind, @options.seconds)
      used = CPUTime.of(server.pids) - before
      return if used.negative?

      Sample.new(cpu: used / [result.requests, 1].max * 1e6, rate: result.requests / result.seconds,
                 errors: result.errors)
    end

    def load(server, kind, seconds)
      Wrk.new(connections: kind.connections, headers: kind.headers, cores: @options.cores.last)
         .run(server.port, seconds: seconds)
    end
  end
end
