# frozen_string_literal: true

require "pando/cluster/canary/records"
require "pando/cluster/canary/statistics"
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

        # @param curve [Curve] of the new generation
        # @param before [Curve] of the old one
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
        # @return [String, nil]
        def hopeless
          return if @curve.requests.zero? || @curve.failures < @curve.requests
          return if [@before, @beside].compact.any? { |other| other.requests.positive? && mostly_fails?(other) }

          "#{failures(@curve)} failed"
        end

        # @return [String, nil]
        def crashing(chance)
          return if @curve.crashes < 2
          return unless ExactTest.p(@curve.crashes, [@curve.requests, @curve.crashes].max,
                                    @before.crashes, [@before.requests, @before.crashes].max) < chance

          "#{counted(@curve.crashes, "worker")} ended unexpectedly in #{counted(@curve.requests, "request")}"
        end

        private

        def mostly_fails?(other) = other.failures * 2 >= other.requests
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
          strata = strata(@curve.public_send(measure), @before.public_send(measure))
          return unless longer?(strata, *limits, chance) && slower_now?(measure, limits, now)

          "a request takes #{ratio(strata).round(1)} times the #{name} that it took before at the same age " \
            "(#{counted(@curve.requests, "request")})"
        end

        def slower_now?(measure, limits, now)
          return true unless @beside

          longer?(strata([all(@curve, measure)], [all(@beside, measure)]), *limits, now)
        end

        def all(curve, measure)
          curve.public_send(measure).each_with_object(Hash.new(0)) do |band, sum|
            sum.merge!(band) { |_, one, two| one + two }
          end
        end

        # @param mine [Array<Hash>] of the new workers, see Curve#cpu
        # @param others [Array<Hash>] of the old ones, in the same bands
        def strata(mine, others) = mine.zip(others).reject { |one, other| one.empty? || other.empty? }

        # @param times [Float] that requests must take longer by, at least @param microseconds [Float] likewise
        # @param chance [Float]
        def longer?(strata, times, microseconds, chance)
          return false if strata.empty? || RankTest.p(strata) >= chance

          ratio(strata) >= times &&
            median_of_pairs(strata) do |mine, other|
              Curve.microseconds(mine) - Curve.microseconds(other)
            end >= microseconds
        end

        # How many times as long the new requests take, by the median of all pairs of a new and an old request of the
        # same age (Hodges and Lehmann's estimate).
        # @return [Float]
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
    end
  end
end
