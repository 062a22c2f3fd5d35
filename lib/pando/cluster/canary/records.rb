# frozen_string_literal: true

require "pando/cluster/canary/comparison"

module Pando
  module Cluster
    module Canary
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
