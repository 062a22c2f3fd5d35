# frozen_string_literal: true

module Pando
  module Cluster
    module Canary
      # Fisher's exact test, one-sided: the probability of at least this many failures among the requests, if they
      # fail no more often than the others. Valid for any numbers, however small.
      module ExactTest
        # @param failures [Integer] of `requests`
        # @param failures_before [Integer] of `requests_before`
        # @return [Float] 0..1; 1: nothing speaks against it
        def self.p(failures, requests, failures_before, requests_before)
          all = failures + failures_before
          last = [all, requests].min
          sum = (failures..last).sum do |count|
            next 0.0 if all - count > requests_before

            Math.exp(choose(requests, count) + choose(requests_before, all - count) -
                     choose(requests + requests_before, all))
          end
          [sum, 1.0].min
        end

        # The logarithm of the binomial coefficient.
        def self.choose(from, count)
          Math.lgamma(from + 1).first - Math.lgamma(count + 1).first - Math.lgamma(from - count + 1).first
        end
        private_class_method :choose
      end

      # Wilcoxon's rank-sum test in strata, with van Elteren's weights: whether values tend to be larger than the others
      # of the same stratum. Only ranks count: no single request decides, and times may be distributed in any way.
      module RankTest
        # @param strata [Array<Array(Hash, Hash)>] how often each value occurs: among the tested ones, among the others
        # @return [Float] 0..1, by the normal approximation; 1: nothing can be said
        def self.p(strata)
          shift = variance = 0.0
          strata.each do |mine, others|
            weight = 1.0 / (mine.values.sum + others.values.sum + 1)
            shift += weight * surplus(mine, others)
            variance += (weight**2) * variance_of(mine, others)
          end
          variance.positive? ? Math.erfc(shift / Math.sqrt(2 * variance)) / 2 : 1.0
        end

        # Pairs in which mine is larger, above half of all pairs.
        def self.surplus(mine, others)
          below = 0
          pairs = (mine.keys | others.keys).sort.sum do |value|
            ties = others.fetch(value, 0)
            won = mine.fetch(value, 0) * (below + (ties / 2.0))
            below += ties
            won
          end
          pairs - (mine.values.sum * below / 2.0)
        end

        def self.variance_of(mine, others)
          all = mine.values.sum + others.values.sum
          return 0.0 if all < 2

          ties = mine.merge(others) { |_, one, two| one + two }.each_value.sum { |tied| (tied**3) - tied }
          mine.values.sum * others.values.sum / 12.0 * (all + 1 - (ties / (all * (all - 1.0))))
        end
        private_class_method :surplus, :variance_of
      end
    end
  end
end
