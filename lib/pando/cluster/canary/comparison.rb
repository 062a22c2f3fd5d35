# frozen_string_literal: true

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

      # The curves of all generations: living workers by their rows, dead ones by the last state of their rows.
      #
      # A generation that boots from cold has caches to fill and code to compile that a forked one inherits. The
      # durations of its requests are compared with the last generation that began cold, even if forked ones have served
      # since. Owned by Evaluation, in the monitor.
      class Records
        include Brief

        # What a worker has done since it was marked: its row, without what came before.
        Since = Struct.new(:row, :requests_before, :failures_before, :recents) do
          def self.now(row) = new(row, row.requests, row.failures, row.recents)
          def requests = [row.requests - requests_before, 0].max
          def failures = [row.failures - failures_before, 0].max
          def first_jobs = row.jobs_since(recents)
          def faults = []
        end
        private_constant :Since

        def initialize(roster, discarded)
          @roster = roster
          @discarded = discarded
          @dead = Hash.new { |curves, number| curves[number] = Curve.new }
          @cold = {}
        end

        # This generation boots from cold. Its curve is read on demand, and stored when it serves no more.
        def begun_cold(number) = @cold[number] ||= nil

        # A worker is gone; its row is still its own.
        # @param crashed [Boolean] unexpectedly
        def add_dead(worker, crashed)
          return if @discarded.call(worker)

          curve = @dead[worker.generation].add(worker.row, jobs: measure?(worker.row))
          curve.add_crash if crashed
        end

        def of(number) = sum { |other| other == number }

        # @param number [Integer] of the generation that is on trial
        # @return [Curve] of all others that serve, or served before it
        def before(number)
          curve = measured { |other| other < number }
          @cold.key?(number) ? curve.with_pace_of(cold_before(number)) : curve
        end

        # Forgets all generations before this one: they serve no more.
        def forget_before(number)
          keep_cold(number)
          @dead.delete_if { |other, _| other < number }
        end

        # The generation was discarded.
        def forget(number)
          @dead.delete(number)
          @cold.delete(number)
        end

        # A mold was lost: the workers of the new one are compared with all good ones before.
        def merge_into(number)
          keep_cold(number)
          begun_cold(number) if @cold.empty?
          sum = @dead.values.inject(Curve.new, :merge)
          @dead.clear
          @dead[number] = sum
        end

        # @return [Hash{Child => Object}] where the other workers are now
        def marks(number)
          workers { |other| other < number }.to_h { |worker| [worker, Since.now(worker.row)] }.compare_by_identity
        end

        # @return [Curve] what those workers have done since
        def since(marks)
          marks.reject { |worker, _| worker.gone? }.each_value.inject(Curve.new) { |curve, row| curve.add(row) }
        end

        private

        # Empty if none is known, as after an upgrade of the monitor.
        def cold_before(number)
          last = @cold.keys.select { |other| other < number }.max
          (last && (@cold[last] || measured { |other| other == last })) || Curve.new
        end

        # Keeps the last one, and the one before it, in case the last is rolled back.
        def keep_cold(number)
          @cold.each_key { |cold| @cold[cold] ||= measured { |other| other == cold } if cold < number }
          @cold = @cold.max_by(2, &:first).to_h
        end

        def measured(&) = sum(method(:measure?), &)

        # A worker whose mold knew which pages it would write to is faster in its first jobs than a canary, for which
        # they can only be guessed.
        def measure?(row) = row.prefaulted.first.zero? || row.prefault_guessed?

        # @param jobs [#call] tells whether the durations of a worker's jobs and its faults count
        def sum(jobs = ->(_row) { true }, &wanted)
          living = workers(&wanted).map { |worker| Curve.new.add(worker.row, jobs: jobs.call(worker.row)) }
          [*@dead.select { |number, _| wanted.call(number) }.values, *living].inject(Curve.new, :merge)
        end

        def workers(&wanted)
          @roster.workers.select { |worker| worker.pidfd && wanted.call(worker.generation) && !@discarded.call(worker) }
        end
      end
    end
  end
end
