# frozen_string_literal: true

module Pando
  module Cluster
    module Canary
      # The rank-sum test of Wilcoxon in strata, as van Elteren weights them: whether values tend to be larger than
      # those of the same stratum that they are compared with. It knows ranks only: no single request, however long,
      # decides, and it asks nothing of how times are distributed.
      #
      # @api private
      module RankTest
        # @param strata [Array<Array(Hash, Hash)>] how many there are of each value: of the ones asked about, of the
        #   others
        # @return [Float] 0..1, by the normal approximation; 1: nothing can be said
        def self.p(strata)
          shift = variance = 0.0
          strata.each do |mine, others|
            all = mine.values.sum + others.values.sum
            weight = 1.0 / (all + 1)
            shift += weight * surplus(mine, others)
            variance += (weight**2) * variance_of(mine, others, all)
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

        def self.variance_of(mine, others, all)
          return 0.0 if all < 2

          ties = (mine.keys | others.keys).sum do |value|
            tied = mine.fetch(value, 0) + others.fetch(value, 0)
            (tied**3) - tied
          end
          mine.values.sum * others.values.sum / 12.0 * (all + 1 - (ties / (all * (all - 1.0))))
        end
        private_class_method :surplus, :variance_of
      end
    end
  end
end
