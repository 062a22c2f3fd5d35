# frozen_string_literal: true

require "support/live/section"
require "support/open_load"
require "support/statistics"

module Bench
  module Live
    # A section that compares how long the same requests take in several cases, in turn, round by round. A case has a
    # name in CASES; `run(case, round)` gives an OpenLoad::Result.
    class Latencies < Section
      WARM_UP = 3 # seconds
      CONNECTIONS = 16

      def call
        @samples = Hash.new { |all, name| all[name] = [] }
        @options.rounds.times { |round| measure(round) }
        self
      end

      def to_h
        { samples: @samples.transform_values { |results| results.map { |result| figures(result) } }, targets: targets }
      end

      private

      def cases = self.class::CASES.keys

      # @return [OpenLoad] the same requests at the same moments in each case of a round
      def load(rate, round)
        OpenLoad.new(connections: CONNECTIONS, rate: rate, seconds: @options.seconds, warmup: WARM_UP, fast: "/fast",
                     slow_share: 0, drain: 5, seed: round + 1)
      end

      def figures(result)
        { **result.fast.to_h, lag: result.lag.p99, failed: result.failed, unanswered: result.unanswered }
      end

      def middle(name, field) = Statistics.median(@samples.fetch(name).map { |result| result.fast[field] })
      def failed(name) = @samples.fetch(name).sum { |result| result.failed + result.unanswered }

      # @return [Float] the median of the rounds' ratios, because what is measured in one round is close in time
      def ratio(name, other, field) = Statistics.median(ratios(name, other, field))

      def ratios(name, other, field)
        @samples.fetch(name).zip(@samples.fetch(other)).map { |one, two| one.fast[field] / two.fast[field] }
      end

      def head = ["", "p50, ms", "p99", "of the first", "in each round", "lost", "generator's delay, p99"]

      def rows
        cases.map do |name|
          [self.class::CASES.fetch(name), *%i[p50 p99].map { |field| format("%.2f", middle(name, field)) },
           *compared(name), failed(name).to_s,
           format("%.2f", Statistics.median(@samples.fetch(name).map { |result| result.lag.p99 }))]
        end
      end

      def compared(name)
        return ["", ""] if name == cases.first

        rounds = ratios(name, cases.first, :p99)
        [format("%.2f", Statistics.median(rounds)), rounds.map { |each| format("%.2f", each) }.join(" ")]
      end
    end
  end
end
