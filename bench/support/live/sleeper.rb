# frozen_string_literal: true

require "support/live/latencies"

module Bench
  module Live
    # An endpoint that sleeps, asked more often than any pool could answer, and how long the other requests take.
    class Sleeper < Latencies
      CASES = { alone: "nobody asks for it", pool: "a pool of its own", shared: "no pool for it" }.freeze
      POOL = "pool :slow, paths: [\"/slow\"], workers: 1, threads: 16\n"
      WORKERS = 4
      FAST = 2 # milliseconds
      MOST = 1.1 # of the p99 when nobody asks for it

      def targets
        { "p99 beside a pool of its own: #{ratio(:pool, :alone, :p99).round(2)} of that without, at most #{MOST}" =>
            ratio(:pool, :alone, :p99) <= MOST,
          "#{failed(:pool)} failed requests, 0" => failed(:pool).zero? }
      end

      private

      def measure(round)
        cases.rotate(round).each do |name|
          progress("round #{round + 1}, #{CASES.fetch(name)}")
          @samples[name] << run(name, round)
        end
      end

      def run(name, round)
        config = "#{POOL unless name == :shared}stop_timeout 1\n"
        serve("waiting.ru", config, workers: WORKERS, environment: environment) do |server|
          slow = Thread.new { sleepers.run(server.port) } unless name == :alone
          load(@options.others, round).run(server.port).tap { slow&.join }
        end
      end

      # They come for as long as the others do; nobody waits for their answers.
      def sleepers
        OpenLoad.new(connections: connections, rate: @options.sleepers, seconds: @options.seconds, warmup: WARM_UP,
                     fast: "/slow", slow_share: 0, drain: 0, host: 2)
      end

      # Enough that each can wait on its own.
      def connections = @options.sleepers * (@options.seconds + WARM_UP)

      def environment
        { "BENCH_FAST" => FAST.to_s, "BENCH_SLOW" => (@options.sleep * 1000).to_s, "BENCH_WAIT" => "yields" }
      end

      def title
        "an endpoint that sleeps #{@options.sleep} s under #{@options.sleepers} requests/s, " \
          "#{@options.others} others/s of #{FAST} ms, #{WORKERS} workers, " \
          "#{@options.rounds} rounds of #{@options.seconds} s"
      end
    end
  end
end
