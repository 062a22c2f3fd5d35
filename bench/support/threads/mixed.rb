# frozen_string_literal: true

require "support/lab/figures"
require "support/open_load"
require "support/threads/best_case"
require "support/threads/section"

module Bench
  module Threads
    # Requests that compute and wait, at a fixed rate (open loop): how long they take. The rate is a share of what the
    # workers can do, if each of them computes all the time.
    class Mixed < Section
      SERVERS = %w[puma-1 puma-3 puma-5 puma-10 pando-1 pando-5 pando-auto].freeze
      CPU = 10 # milliseconds a request
      WAIT = 40
      CONNECTIONS = 32
      WARM_UP = 2 # seconds
      MOST = 0.6 # of the p99 of the best Puma
      SIMULATED = 100_000 # requests

      def targets
        ours = @names & %w[pando-5 pando-auto]
        @options.loads.product(ours).filter_map do |load, name|
          best = best_puma(load) or next
          target(name, best, :"p99_#{load}", "p99 at #{load}% (the best Puma)", most: MOST)
        end.reduce({}, :merge)
      end

      private

      def title
        "#{CPU} ms of computing (#{@options.work}) and #{WAIT} ms of waiting a request, in #{@options.parts} parts, " \
          "#{@options.workers} workers, open loop, #{CONNECTIONS} connections"
      end

      def app = File.expand_path("../../apps/mixed.ru", __dir__)

      def server_options(folder)
        File.write(File.join(folder, "puma.rb"), "enable_keep_alives false\n") unless @options.keep_alive?
        { workers: @options.workers,
          environment: { "BENCH_CPU" => CPU.to_s, "BENCH_WAIT" => WAIT.to_s, "BENCH_PARTS" => @options.parts.to_s,
                         "BENCH_WORK" => @options.work } }
      end

      # The same seed for all servers: they get the same requests at the same moments.
      def measure(server, _name, round)
        @options.loads.each_with_object({}) do |load, figures|
          result = nil
          cpu = cpu_per_request(server) { (result = load(load, round).run(server.port)).sent }
          figures.merge!("p50_#{load}": result.fast.p50, "p99_#{load}": result.fast.p99, "cpu_#{load}": cpu,
                         "lag_#{load}": result.lag.p99, "failed_#{load}": result.failed + result.unanswered)
        end
      end

      def load(share, round)
        OpenLoad.new(connections: CONNECTIONS, rate: share / 100.0 * @options.workers * 1000 / CPU,
                     seconds: @options.seconds, warmup: WARM_UP, slow_share: 0, drain: 2, seed: round + 1)
      end

      def best_puma(load) = @names.grep(/puma/).min_by { |name| middle(name, :"p99_#{load}") }

      def head
        ["", *@options.loads.flat_map { |load| ["p50 at #{load}%", "p99", "of the best Puma"] },
         "CPU beyond, ms", "lost"]
      end

      def rows = [*measured, simulated]

      def measured
        @names.map do |name|
          [Contestants.label(name), *@options.loads.flat_map { |load| cells(name, load) },
           format("%.2f", (middle(name, :"cpu_#{@options.loads.first}") * 1000) - (@options.work == "real" ? CPU : 0)),
           @samples[name].sum { |figures| figures.sum { |key, value| key.start_with?("failed") ? value : 0 } }.to_s]
        end
      end

      def cells(name, load)
        best = best_puma(load)
        [format("%.0f", middle(name, :"p50_#{load}")), format("%.0f", middle(name, :"p99_#{load}")),
         best ? times(name, best, :"p99_#{load}") : "-"]
      end

      def simulated
        parts = @options.parts
        ideal = @options.loads.flat_map do |load|
          workers = BestCase.new(workers: @options.workers, parts: parts, compute: CPU * 1000 / parts,
                                 pause: WAIT * 1000 / parts)
          latencies = workers.run(load / 100.0, SIMULATED).map { |microseconds| microseconds / 1000.0 }
          p50, p99 = [0.5, 0.99].map { |share| Lab::Figures.percentile(latencies, share) }
          best = best_puma(load)&.then { |name| format("%.2f", p99 / middle(name, :"p99_#{load}")) }
          [format("%.0f", p50), format("%.0f", p99), best || "-"]
        end
        ["the rule of :auto without overhead, simulated", *ideal, "0.00", "0"]
      end

      def noisy
        @options.loads.to_h { |load| [:"p99_#{load}", "p99 at #{load}%"] }
                .merge("cpu_#{@options.loads.first}": "CPU", "lag_#{@options.loads.last}": "lag")
      end
    end
  end
end
