# frozen_string_literal: true

require "support/lab/apps"
require "support/lab/client"
require "support/lab/figures"
require "support/memory"
require "support/threads/section"

module Bench
  module Threads
    # The lab's Rails app behind a wait, a number of requests under way all the time: memory over the run, CPU time and
    # throughput. Pando reforks as it does by default, or as `--refork` says.
    class Waiting < Section
      SERVERS = %w[puma-5 pando-5 pando-auto].freeze
      WAIT = 50 # milliseconds
      CLIENTS = 10
      MIB = 1024.0 * 1024
      SLICE = 200 # requests between two readings
      MOST_MEMORY = 0.7 # of Puma's
      MOST_CPU = 1.0

      def targets
        (@names & %w[pando-5 pando-auto]).reduce({}) do |all, name|
          all.merge(target(name, "puma-5", :pss, "average PSS", most: MOST_MEMORY),
                    target(name, "puma-5", :cpu, "CPU a request (waiting)", most: MOST_CPU),
                    target(name, "puma-5", :rate, "requests/s (waiting)", least: 1))
        end
      end

      private

      def title
        "the lab's Rails app behind #{WAIT} ms of waiting, #{@options.workers} workers, #{CLIENTS} in flight, " \
          "#{@options.requests} requests"
      end

      def prepare = rails.prepare(bundle)
      def rails = @rails ||= Lab::Apps.build("rails")
      def bundle = Lab::Apps.bundle
      def app = File.expand_path("../../apps/behind_a_wait.ru", __dir__)

      def server_options(folder)
        { workers: @options.workers, refork: @options.refork,
          environment: rails.environment(folder).merge("BENCH_WAIT" => WAIT.to_s) }
      end

      def measure(server, _name, _round)
        client = Lab::Client.new(server.port, rails.traffic(1), clients: CLIENTS)
        points = [[0, weigh(server)]]
        seconds = 0.0
        cpu = cpu_per_request(server) do
          (@options.requests / SLICE).times do
            seconds += timed { client.run(SLICE) }
            points << [client.sent.size, weigh(server)]
          end
          client.sent.size
        end
        figures(client, points, seconds).merge(cpu: cpu)
      end

      def figures(client, points, seconds)
        times = client.sent.filter_map(&:seconds)
        { pss: Lab::Figures.average(points), pss_end: points.last.last, rate: client.sent.size / seconds,
          p99: Lab::Figures.percentile(times, 0.99) * 1000, errors: client.failures.size,
          failed: client.failures.first(5), curve: points }
      end

      def weigh(server) = Memory.of(server.pids, []).pss

      def timed
        started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        yield
        Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
      end

      def head
        ["", "PSS mean, MiB", "of Puma's", "PSS end", "CPU a request, ms", "of Puma's", "requests/s", "of Puma's",
         "p99, ms", "errors"]
      end

      def rows
        @names.map do |name|
          [Contestants.label(name), format("%.0f", middle(name, :pss) / MIB), times(name, "puma-5", :pss),
           format("%.0f", middle(name, :pss_end) / MIB),
           format("%.2f", middle(name, :cpu) * 1000), times(name, "puma-5", :cpu),
           format("%.0f", middle(name, :rate)), times(name, "puma-5", :rate), format("%.0f", middle(name, :p99)),
           @samples[name].sum { |each| each[:errors] }.to_s]
        end
      end

      def noisy = { pss: "PSS", cpu: "CPU", rate: "requests/s" }
    end
  end
end
