# frozen_string_literal: true

require "pando/cluster/canary/curve"
require "pando/cluster/canary/rank_test"

module Pando
  module Cluster
    module Canary
      # How long requests take, compared by age: worse is what is longer by more than chance and by more than matters.
      #
      # @api private
      class Duration
        # @param mine [Array<Hash>] of the new workers, see Curve#cpu
        # @param others [Array<Hash>] of those before, in the same bands
        def initialize(mine, others)
          @strata = mine.zip(others).reject { |one, other| one.empty? || other.empty? }
        end

        # @return [Float] how likely it is by chance
        def p = @strata.empty? ? 1.0 : RankTest.p(@strata)

        # How many times as long the new ones take: the median of all pairs of a new request and an old one of the same
        # age (Hodges and Lehmann's estimate).
        # @return [Float]
        def ratio = 2**median_of_pairs { |mine, other| (mine - other) / 8.0 }

        # Likewise, in microseconds more.
        def surplus = median_of_pairs { |mine, other| Curve.microseconds(mine) - Curve.microseconds(other) }

        # @param times [Float] that it must be longer by, at least @param microseconds [Float] likewise
        # @param chance [Float]
        def worse?(times, microseconds, chance)
          p < chance && ratio >= times && surplus >= microseconds
        end

        private

        def median_of_pairs
          pairs = Hash.new(0)
          @strata.each do |mine, others|
            mine.each { |code, count| others.each { |other, more| pairs[yield(code, other)] += count * more } }
          end
          median(pairs)
        end

        # @param histogram [Hash{Numeric => Integer}] not empty
        def median(histogram)
          half = histogram.values.sum / 2.0
          seen = 0
          histogram.sort.find { |_, count| (seen += count) >= half }.first
        end
      end
    end
  end
end
