# frozen_string_literal: true

require "etc"
require "support/threads/section"
require "support/wrk"

module Bench
  module Threads
    # Hello world with one worker: what threads cost a server that has no use for them.
    class Hello < Section
      SERVERS = %w[pando-1 pando-5 pando-auto pando-base puma-5].freeze
      WARM_UP = 30_000 # requests, enough to compile all hot code
      CONNECTIONS = 16
      MOST = 1.1 # of the CPU time of one thread

      private

      def title = "hello world, one worker, #{CONNECTIONS} connections kept alive"
      def app = File.expand_path("../../apps/hello.ru", __dir__)
      def cores = Etc.nprocessors > 1 ? %w[0 1] : [nil, nil]
      def server_options(_folder) = { workers: 1, cores: cores.first, environment: environment }
      def environment = {}

      def measure(server, _name, _round)
        warm_up(server)
        result = nil
        cpu = cpu_per_request(server) { (result = load(server, @options.seconds)).requests }
        { cpu: cpu, rate: result.requests / result.seconds, errors: result.errors }
      end

      # By requests, because a busy machine may serve few in a second.
      def warm_up(server)
        done = 0
        done += load(server, 1).requests while done < self.class::WARM_UP
      end

      def load(server, seconds)
        Wrk.new(connections: CONNECTIONS, cores: cores.last).run(server.port, seconds: seconds)
      end

      def head = ["", "CPU a request", "of one thread's", "requests/s", "of one thread's", "errors"]

      def rows
        @names.map do |name|
          [Contestants.label(name), format("%.1f us", middle(name, :cpu) * 1e6), times(name, "pando-1", :cpu),
           format("%.0f", middle(name, :rate)), times(name, "pando-1", :rate),
           @samples[name].sum { |figures| figures[:errors] }.to_s]
        end
      end

      def noisy = { cpu: "CPU", rate: "requests/s" }

      public

      def targets
        %w[pando-5 pando-auto].reduce({}) do |all, name|
          all.merge(target(name, "pando-1", :cpu, "CPU a request (hello)", most: MOST))
        end
      end
    end

    # Requests that only compute, one worker: threads must not slow them down.
    class Busy < Hello
      SERVERS = %w[pando-1 pando-5 pando-auto puma-5].freeze
      CPU = 10 # milliseconds
      WARM_UP = 100
      SLACK = 0.05

      private

      def title = "#{CPU} ms of CPU time a request, one worker, #{CONNECTIONS} connections kept alive"
      def app = File.expand_path("../../apps/mixed.ru", __dir__)

      def environment
        { "BENCH_CPU" => CPU.to_s, "BENCH_WAIT" => "0", "BENCH_PARTS" => "1", "BENCH_WORK" => "real" }
      end

      public

      def targets
        target("pando-auto", "pando-1", :cpu, "CPU a request (computing)", most: 1 + SLACK)
          .merge(target("pando-auto", "pando-1", :rate, "requests/s (computing)", least: 1 - SLACK))
      end
    end
  end
end
