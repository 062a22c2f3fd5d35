# frozen_string_literal: true

require "pando/cluster/proof/curve"
require "pando/cluster/proof/rank_test"

module Pando
  module Cluster
    module Proof
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

        # How many times as long the new ones take, in the median of requests against the median of those of the
        # same age before.
        # @return [Float]
        def ratio
          2**median(Hash.new(0).tap do |logs|
            each_pair { |mine, other, count| logs[Math.log2(mine / other)] += count }
          end)
        end

        # Likewise, in microseconds more.
        def surplus
          median(Hash.new(0).tap do |more|
            each_pair { |mine, other, count| more[mine - other] += count }
          end)
        end

        # @param times [Float] that it must be longer by, at least @param microseconds [Float] likewise
        # @param chance [Float]
        def worse?(times, microseconds, chance)
          !@strata.empty? && ratio >= times && surplus >= microseconds && p < chance
        end

        private

        def each_pair
          @strata.each do |mine, others|
            other = Curve.microseconds(median(others))
            mine.each { |code, count| yield Curve.microseconds(code), other, count }
          end
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
