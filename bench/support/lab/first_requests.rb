# frozen_string_literal: true

require "support/lab/figures"

module Bench
  module Lab
    # The first requests of reforked workers, pooled over all rounds of an outcome: the 99th percentile of their CPU
    # time as a multiple of a baseline, at the same mix of requests.
    class FirstRequests
      SHARE = 0.99

      # @param outcome [Outcome]
      def initialize(outcome)
        @raws = outcome.runs.filter_map { |run| run[:raw] }
      end

      # @return [Integer] those whose ancestors had served a thousand requests
      def size = pooled(:warm).size

      # @return [Float, nil] baseline: steady state, workers' later requests in the second half of the run
      def of_steady = Figures.ratio_at_equal_mix(pooled(:first), pooled(:steady), SHARE)

      # @return [Float, nil] the same, only for workers whose ancestors had served a thousand requests
      def of_steady_when_warm = Figures.ratio_at_equal_mix(pooled(:warm), pooled(:steady), SHARE)

      # @return [Float, nil] baseline: the next requests of the same workers, those of warm ancestors
      def of_next_when_warm = Figures.ratio_at_equal_mix(pooled(:warm), pooled(:next), SHARE)

      # Baseline: the same requests, at the same time of its life, to a server that does not refork. This leaves the
      # cost of the refork, without that of the app's warm-up.
      #
      # @param other [Outcome, nil]
      # @return [Float, nil]
      def of_the_same(other)
        theirs = other&.runs&.filter_map { |run| run.dig(:raw, :cpu) } || []
        places = @raws.flat_map { |raw| raw[:first] }
        same = Figures.percentile(theirs.flat_map { |cpu| cpu.values_at(*places).compact }, SHARE)
        Figures.percentile(pooled(:first).map(&:last), SHARE) / same.to_f if same
      end

      private

      # @return [Array<Array(Integer, Integer)>] targets and microseconds
      def pooled(kind)
        @raws.flat_map { |raw| raw.fetch(kind, []).map { |place| [raw[:targets][place], raw[:cpu][place]] } }
      end
    end
  end
end
