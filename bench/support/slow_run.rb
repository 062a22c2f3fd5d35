# frozen_string_literal: true

require "tmpdir"
require "support/memory"
require "support/open_load"
require "support/servers"
require "support/slow_clients"

module Bench
  # Measures one server with and without slow clients, in turn, and once with idle connections.
  class SlowRun
    APP = File.expand_path("../apps/hello.ru", __dir__)
    WARM_UP = 3000 # requests per second, for the number of seconds in the next line
    WARM_UP_SECONDS = 3
    SETTLE = 2 # seconds of a measurement that do not count
    SLOW_SETTLE = 10 # the same with slow clients: by then, each is in the middle of a request

    # @!attribute alone [Array<OpenLoad::Result>] the normal client alone, once per round
    # @!attribute beside [Array<OpenLoad::Result>] the normal client next to the slow ones
    # @!attribute clients [Array<Hash>] the results of the slow clients
    # @!attribute slow_bytes [Integer] the most PSS that they took
    # @!attribute idle [Hash] the results of the idle clients
    # @!attribute idle_bytes [Integer] PSS that they took
    # @!attribute poked [Integer] requests on idle connections that were answered
    Result = Struct.new(:name, :alone, :beside, :clients, :slow_bytes, :idle, :idle_bytes, :poked, keyword_init: true)

    def initialize(name, options)
      @name = name
      @options = options
      @result = Result.new(name: name, alone: [], beside: [], clients: [], slow_bytes: 0)
    end

    # @return [Result]
    def call
      with_server { |server| slow(server) } if @options.slow.positive?
      with_server { |server| idle(server) } if @options.idle.positive?
      @result
    end

    private

    def with_server
      Dir.mktmpdir("pando-bench") do |folder|
        server = Servers.build(@name, app: APP, folder: folder, environment: environment, workers: @options.workers,
                                      cores: @options.cores.first)
        server.run do
          normal(rate: WARM_UP, seconds: WARM_UP_SECONDS, connections: 8).run(server.port)
          yield server
        end
      end
    end

    def slow(server)
      before = memory(server)
      @options.rounds.times do
        @result.alone << normal.run(server.port)
        @result.clients << slow_clients(server, @options.kinds) do
          @result.beside << normal(settle: SLOW_SETTLE).run(server.port)
          @result.slow_bytes = [@result.slow_bytes, memory(server) - before].max
        end
      end
    end

    def idle(server)
      before = memory(server)
      @result.idle = slow_clients(server, { idle: @options.idle }) do |clients|
        @result.idle_bytes = memory(server) - before
        @result.poked = clients.poke(@options.poke)
      end
    end

    def slow_clients(server, kinds, &block)
      SlowClients.run(server.port, cores: @options.cores.last, hosts: @options.hosts, **kinds, &block)
    end

    # One client with one connection and a fixed rate of requests.
    def normal(rate: @options.rate, seconds: @options.seconds, connections: 1, settle: SETTLE)
      OpenLoad.new(connections: connections, rate: rate, seconds: seconds, warmup: settle, arrivals: "fixed",
                   fast: "/", drain: 5, cores: @options.cores.last, host: @options.host)
    end

    def memory(server) = Memory.of(server.pids, server.worker_pids).pss

    def environment
      { "RACK_ENV" => "production", "RUBY_YJIT_ENABLE" => "1", "BENCH_LARGE" => @options.large.to_s }
    end
  end
end
