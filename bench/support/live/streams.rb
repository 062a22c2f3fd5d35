# frozen_string_literal: true

require "support/connections"
require "support/live/latencies"

module Bench
  module Live
    # Streams of Server-Sent Events in a pool of their own, and how long requests to the other pool take beside them.
    class Streams < Latencies
      CASES = { alone: "without streams", beside: "with streams" }.freeze
      PATH = "/events"
      THREADS = 64 # of a worker, at most
      WEB_WORKERS = 2
      FAST = 2 # milliseconds
      MOST = 1.05 # of the p99 without streams

      def call
        @reports = []
        serve("waiting.ru", config, workers: WEB_WORKERS, environment: environment) do |server|
          @server = server
          super
        end
      end

      def targets
        { "p99 of web with streams: #{ratio(:beside, :alone, :p99).round(2)} of that without, at most #{MOST}" =>
            ratio(:beside, :alone, :p99) <= MOST,
          "#{sum(:wrong)} wrong events, 0" => sum(:wrong).zero?,
          "#{(@options.streams * @reports.size) - sum(:open)} streams refused or ended, 0" =>
            sum(:open) == @options.streams * @reports.size,
          "#{failed(:beside)} failed requests, 0" => failed(:beside).zero? }
      end

      def to_h = super.merge(streams: @options.streams, reports: @reports)

      private

      def workers = (@options.streams + THREADS - 1) / THREADS

      def config
        "pool :live, paths: [\"#{PATH}\"], workers: #{workers}, threads: #{THREADS}, refork: false\nstop_timeout 2\n"
      end

      def environment = { "BENCH_FAST" => FAST.to_s, "BENCH_WAIT" => "holds" }

      # Every other round begins with the streams.
      def measure(round)
        cases.rotate(round).each do |name|
          progress("round #{round + 1}, #{CASES.fetch(name)}")
          @samples[name] << (name == :alone ? load(@options.rate, round).run(@server.port) : beside(round))
        end
      end

      def beside(round)
        Connections.run(@server.port, count: @options.streams, kind: "events", path: PATH,
                                      hosts: @options.hosts) do |connections|
          connections.open(@options.streams)
          began = now
          before = connections.report[:messages]
          result = load(@options.rate, round).run(@server.port)
          seconds = now - began
          @reports << connections.report.then { |all| all.merge(rate: (all[:messages] - before) / seconds) }
          result
        end
      end

      def sum(field) = @reports.sum { |report| report[field] }

      def title
        "#{@options.streams} streams in #{workers} workers of #{THREADS} threads, #{@options.rate} requests/s of " \
          "#{FAST} ms to #{WEB_WORKERS} other workers, #{@options.rounds} rounds of #{@options.seconds} s\n" \
          "events/s: #{@reports.map { |report| report[:rate].round }.join(", ")}"
      end
    end
  end
end
