# frozen_string_literal: true

require "support/lab/matched_ratio"
require "support/lab/summary"

module Bench
  module Lab
    # The first requests of reforked workers, over all rounds of an outcome: the 99th percentile of their CPU time as a
    # multiple of a baseline. A request is compared with requests to the same target in the same round, since rounds
    # differ by the other work on the machine.
    class FirstRequests
      ENOUGH = 10_000 # first requests, and next ones: a hundred of each are then slower than the percentile

      # @param outcome [Outcome]
      def initialize(outcome)
        @runs = outcome.runs.select { |run| run[:raw] }
      end

      # @return [MatchedRatio] to the next requests of the same workers; both only of workers whose ancestors had served
      #   a thousand requests
      def of_next_when_warm = @of_next_when_warm ||= ratio(:warm, :next)

      # The same of workers without reforking, from the ages on at which the reforked ones began. It shows what the
      # app's own warm-up does.
      #
      # @param other [Outcome, nil] a server that does not refork
      # @return [MatchedRatio]
      def of_next_without_reforking(other)
        MatchedRatio.new(requests_from_ages(other, 0, Summary::FIRST),
                         requests_from_ages(other, Summary::FIRST, Summary::NEXT))
      end

      # @return [Boolean] whether there are too few requests to say more than a figure
      def few? = [of_next_when_warm.sample, of_next_when_warm.baseline].any? { |requests| requests.size < ENOUGH }

      # The same of the first worker of each generation, which serves as the canary, and of the others.
      #
      # @return [Array(Float, Float), nil] nil: the runs do not tell
      def of_canaries_and_others
        canaries = @runs.each_with_index.flat_map { |run, round| canaries_of(run[:raw]).map { |each| [round, each] } }
        return if canaries.empty?

        parts = [of_next_when_warm.sample, of_next_when_warm.baseline].map do |requests|
          requests.partition { |request| canaries.include?(request.process) }
        end
        parts.transpose.map { |sample, baseline| MatchedRatio.new(sample, baseline).value }
      end

      # @return [Float, nil] baseline: steady state, workers' later requests in the second half of the run
      def of_steady = ratio(:first, :steady).value

      # @return [Float, nil] the same, only for workers whose ancestors had served a thousand requests
      def of_steady_when_warm = ratio(:warm, :steady).value

      # Baseline: the same requests of the same round, at the same time of its life, to a server that does not refork.
      # This leaves the cost of the refork, without that of the app's warm-up.
      #
      # @param other [Outcome, nil]
      # @return [Float, nil]
      def of_the_same(other)
        theirs = (other&.runs || []).select { |run| run[:raw] }.group_by { |run| run[:round] }
        ours = @runs.select { |run| theirs.key?(run[:round]) }
        same = ours.flat_map do |run|
          theirs[run[:round]].flat_map { |their| their[:raw][:cpu].values_at(*run[:raw][:first]).compact }
        end
        first = ours.flat_map { |run| run[:raw][:cpu].values_at(*run[:raw][:first]) }
        Figures.percentile(first, MatchedRatio::SHARE) / Figures.percentile(same, MatchedRatio::SHARE).to_f if same.any?
      end

      private

      def ratio(kind, baseline) = MatchedRatio.new(requests(kind), requests(baseline))

      def requests(kind)
        @runs.each_with_index.flat_map { |run, round| requests_at(run[:raw], run[:raw].fetch(kind, []), round) }
      end

      def requests_at(raw, places, round)
        places.map do |place|
          process = raw[:process]&.at(place)
          MatchedRatio::Request.new([round, raw[:targets][place]], raw[:cpu][place], process && [round, process])
        end
      end

      # So many requests of each process, after those up to each age and `skipped` more.
      def requests_from_ages(other, skipped, amount)
        runs = (other&.runs || []).select { |run| run.dig(:raw, :process) }
        runs.each_with_index.flat_map do |run, round|
          raw = run[:raw]
          of_a_process = raw[:process].each_index.group_by { |place| raw[:process][place] }.except(nil).values
          places = of_a_process.flat_map { |all| ages.flat_map { |age| all[age + skipped, amount] || [] } }
          requests_at(raw, places, round)
        end
      end

      # @return [Array<Integer>] of each generation of warm workers: requests that their ancestors had served
      def ages
        @ages ||= @runs.map { |run| run[:raw] }.select { |raw| raw[:process] }.flat_map do |raw|
          raw[:ancestors].values_at(*raw[:process].values_at(*raw[:warm])).uniq
        end
      end

      # All workers of a generation have the same ancestors. The canary serves before the others are forked.
      def canaries_of(raw)
        return [] unless raw[:process]

        born = raw[:process].each_with_index.reject { |process, _| process.nil? }.uniq(&:first)
        born.group_by { |process, _| raw[:ancestors][process] }.except(0).values.map { |same| same.first.first }
      end
    end
  end
end
