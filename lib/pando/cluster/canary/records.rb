# frozen_string_literal: true

require "pando/cluster/brief"

module Pando
  module Cluster
    module Canary
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
        # @param jobs [Boolean] with the durations of its jobs
        def add(row, jobs: true)
          requests = row.requests
          durations = jobs ? %i[cpu time].zip(row.first_jobs.map { |codes| Curve.bands(codes) }) : []
          take(requests, [row.failures, requests].min, row.faults, durations)
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
      # since.
      #
      # Owned by Evaluation, in the monitor.
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

        # @param number [Integer] of the generation that is on trial
        # @return [Hash{Child => Object}] where the other workers are now
        def marks(number)
          workers { |other| other < number }.to_h { |worker| [worker, Since.now(worker.row)] }.compare_by_identity
        end

        # @param marks [Hash] as #marks returned it
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

        # A prefaulted worker is faster in its first jobs, and a canary is never prefaulted.
        def measure?(row) = row.prefaulted.first.zero?

        # @param jobs [#call] tells whether the durations of a worker's jobs count
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
