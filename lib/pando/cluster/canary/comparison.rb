# frozen_string_literal: true

require "pando/cluster/canary/records"
require "pando/counted"

module Pando
  module Cluster
    module Canary
      # Compares a new generation with the one before, and says what is worse and not by chance. Each measure is
      # compared with the old workers at the same age, and, if they have served enough meanwhile, with what they do now:
      # the generation is not to blame if all workers slow down or fail.
      class Comparison
        include Counted

        # A request is worse if it takes at least this many times as long, and this many microseconds more: less is not
        # felt, and may come from caches, the clock of the CPU or the scheduler.
        CPU = [1.5, 200.0].freeze
        TIME = [2.0, 1000.0].freeze
        # The same if there is no present to compare with: a busier machine shows a little in CPU time, and at once in
        # time.
        CPU_ALONE = [3.0, 1000.0].freeze
        # The probability of chance that is allowed in the comparison with the present.
        NOW = 0.01
        # Requests that are enough for a comparison with the present.
        ENOUGH = 5

        # @param beside [Curve, nil] what the old workers have done meanwhile, whatever their age
        # @param waited [Float] microseconds per request that the new workers have waited for a CPU: so much of a
        #   request's time is not their own
        def initialize(curve, before, beside = nil, waited: 0.0)
          @time = [TIME.first, TIME.last + waited]
          @curve = curve
          @before = before
          @beside = beside if beside && beside.requests >= ENOUGH
        end

        # @param chance [Float] how often a good generation may be taken for a bad one, for each measure
        # @param now [Float] the same, in the comparison with the present
        # @return [String, nil] what is worse
        def complaint(chance, now = NOW)
          failing(chance, now) || slower("CPU time", :cpu, @beside ? CPU : CPU_ALONE, chance, now) ||
            (slower("time", :time, @time, chance, now) if @beside)
        end

        # Not one request has succeeded, however few there were, while most succeed in the old workers.
        def hopeless
          return if @curve.requests.zero? || @curve.failures < @curve.requests
          return if [@before, @beside].compact.any? { |one| one.requests.positive? && one.failures * 2 >= one.requests }

          "#{failures(@curve)} failed"
        end

        def crashing(chance)
          return if @curve.crashes < 2
          return unless ExactTest.p(@curve.crashes, [@curve.requests, @curve.crashes].max,
                                    @before.crashes, [@before.requests, @before.crashes].max) < chance

          "#{counted(@curve.crashes, "worker")} ended unexpectedly in #{counted(@curve.requests, "request")}"
        end

        private

        def failures(curve) = "#{curve.failures} of #{counted(curve.requests, "request")}"

        def failing(chance, now)
          return unless more_failures?(@before, chance) && (@beside.nil? || more_failures?(@beside, now))

          "#{failures(@curve)} failed, of those before #{failures(@before)}"
        end

        def more_failures?(other, chance)
          @curve.failures.positive? &&
            ExactTest.p(@curve.failures, @curve.requests, other.failures, other.requests) < chance
        end

        def slower(name, measure, limits, chance, now)
          strata = @curve[measure].zip(@before[measure])
          return unless longer?(strata, *limits, chance)
          return unless @beside.nil? || longer?([[@curve.total(measure), @beside.total(measure)]], *limits, now)

          "a request takes #{ratio(strata).round(1)} times the #{name} that it took before at the same age " \
            "(#{counted(@curve.requests, "request")})"
        end

        # @param strata [Array<Array(Hash, Hash)>] durations of the new workers and of the old ones, by age
        # @param times [Float] that requests must take longer by, at least
        # @param microseconds [Float] likewise
        def longer?(strata, times, microseconds, chance)
          strata = strata.reject { |pair| pair.any?(&:empty?) }
          return false if strata.empty? || RankTest.p(strata) >= chance || ratio(strata) < times

          median_of_pairs(strata) { |mine, other| Curve.microseconds(mine) - Curve.microseconds(other) } >= microseconds
        end

        # How many times as long the new requests take, by the median of all pairs of a new and an old request of the
        # same age (Hodges and Lehmann's estimate).
        def ratio(strata) = 2**median_of_pairs(strata) { |mine, other| (mine - other) / 8.0 }

        def median_of_pairs(strata)
          pairs = Hash.new(0)
          strata.each do |mine, others|
            mine.each { |code, count| others.each { |other, more| pairs[yield(code, other)] += count * more } }
          end
          half = pairs.values.sum / 2.0
          seen = 0
          pairs.sort.find { |_, count| (seen += count) >= half }.first
        end
      end

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
      # of the same stratum. It uses only ranks: no single request decides, however long it took, and nothing is
      # assumed about how times are distributed.
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
