# frozen_string_literal: true

require "pando/cluster/canary/statistics"
require "pando/sys/memory"

module Pando
  module Cluster
    module Canary
      # Compares a new generation with the one before, and says what is worse and not by chance. Each measure is
      # compared with the old workers at the same age, and, if they have served enough meanwhile, with what they do now:
      # the generation is not to blame if all workers slow down or fail.
      class Comparison
        include Wording

        # A request is worse if it takes at least this many times as long, and this many microseconds more: less is not
        # felt, and may come from caches, the clock of the CPU or the scheduler.
        CPU = [1.5, 200.0].freeze
        TIME = [2.0, 1000.0].freeze
        # The same without a present to compare with: a busier machine shows a little in CPU time, and much in time.
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

      # The figures of some workers' requests, by the age that the worker had reached: a new worker has page faults and
      # compiles code, so it is compared with workers of the same age. Plain numbers.
      class Curve
        # The first request, the second, then 2, 4, ... 128: up to 256, all that are measured one by one.
        BANDS = 9

        attr_reader :requests, :failures
        # Workers that ended unexpectedly.
        attr_reader :crashes
        # The most page faults of a worker at its 1st, 2nd, 4th, ... request; 0: no worker has come so far.
        attr_reader :faults

        def initialize
          @requests = @failures = @crashes = 0
          @durations = { cpu: Curve.bands(""), time: Curve.bands("") }
          @faults = Array.new(BANDS, 0)
        end

        # How many jobs took how long, by age.
        # @param codes [String] of the first jobs of a worker, in order: eight steps an octave of microseconds
        #   (ext/pando/sys/measure.h)
        # @return [Array<Hash>] BANDS of them, code => count
        def self.bands(codes)
          Array.new(BANDS) { Hash.new(0) }.tap do |bands|
            codes.each_byte.first(1 << (BANDS - 1)).each_with_index do |code, age|
              bands[age.bit_length][code] += 1 unless code.zero?
            end
          end
        end

        def self.microseconds(code)
          octave, step = (code - 1).divmod(8)
          (2.0**octave) * (1 + (step / 8.0))
        end

        # @return [Array<Hash>] see Curve.bands
        def [](measure) = @durations[measure]

        # @return [Hash] all ages together
        def total(measure) = self[measure].inject({}) { |sum, band| Curve.add_up(sum, band) }

        def self.add_up(counts, others) = counts.merge(others) { |_, one, two| one + two }

        # Adds a worker by its row. A job that ends meanwhile may be in one of the numbers and not yet in another; more
        # failures than requests would be impossible.
        # @param jobs [Boolean] with the durations of its jobs and its page faults
        def add(row, jobs: true)
          requests = row.requests
          durations = jobs ? %i[cpu time].zip(row.first_jobs.map { |codes| Curve.bands(codes) }) : []
          take(requests, [row.failures, requests].min, jobs ? faults_of(row) : [], durations)
        end

        def add_crash = @crashes += 1

        def merge(other)
          @crashes += other.crashes
          take(other.requests, other.failures, other.faults, %i[cpu time].map { |measure| [measure, other[measure]] })
        end

        # @return [Curve] with the requests, failures and crashes of this one, and the durations and faults of the other
        def with_pace_of(other) = dup.take_pace(other)

        protected

        def take_pace(other)
          @durations = { cpu: other[:cpu], time: other[:time] }
          @faults = other.faults
          self
        end

        private

        # Leaves out the faults for pages that the worker got before it served: another canary may have got none.
        def faults_of(row)
          faults = row.faults
          return faults if faults.none?(&:positive?)

          given = row.prefaulted.first / Sys::Memory::PAGE
          faults.map { |count| count.zero? ? 0 : [count - given, 1].max }
        end

        def take(requests, failures, faults, durations)
          @requests += requests
          @failures += failures
          @faults = @faults.zip(faults).map { |mine, other| [mine, other.to_i].max }
          durations.each do |measure, bands|
            @durations[measure] = @durations[measure].zip(bands).map { |mine, other| Curve.add_up(mine, other) }
          end
          self
        end
      end
    end
  end
end
