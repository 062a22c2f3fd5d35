# frozen_string_literal: true

require "pando/cluster/brief"
require "pando/cluster/canary/curve"

module Pando
  module Cluster
    module Canary
      # What each generation's workers have done: the living as their rows tell, the dead as they told last.
      #
      # A generation that is booted from cold has caches to fill and code to compile that a forked one inherits. What
      # its requests take is compared with the last generation that began cold, also if forked ones have served since.
      #
      # Owned by the monitor.
      #
      # @api private
      class Records
        include Brief

        # Requests that a worker has done at some moment, and how many of them were measured.
        Mark = Struct.new(:requests, :failures, :recents)

        # @param discarded [#call] tells which workers were forked for a generation that came to nothing
        def initialize(roster, discarded)
          @roster = roster
          @discarded = discarded
          @dead = Hash.new { |curves, number| curves[number] = Curve.new }
          @cold = {}
        end

        # This generation is booted, and not forked from a worker.
        # @param number [Integer]
        def begun_cold(number)
          @cold[number] ||= nil # what it took is read when it is asked for, and kept when it serves no more
        end

        # A worker is gone; its row is still its own.
        # @param crashed [Boolean] as nobody wanted
        def bury(worker, crashed)
          return if @discarded.call(worker)

          curve = @dead[worker.generation].add(worker.row, jobs: measure?(worker.row))
          curve.add_crash if crashed
        end

        # @param number [Integer] of a generation
        # @return [Curve]
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

        # It came to nothing.
        def forget(number)
          @dead.delete(number)
          @cold.delete(number)
        end

        # A mold was lost: the workers of the new one are compared with all that were good before.
        def fold_into(number)
          keep_cold(number)
          begun_cold(number) if @cold.empty?
          sum = @dead.values.inject(Curve.new, :merge)
          @dead.clear
          @dead[number] = sum
        end

        # @param number [Integer] of the generation that is on trial
        # @return [Hash{Child => Mark}] where the others are now
        def marks(number)
          workers { |other| other < number }.to_h { |worker| [worker, mark(worker.row)] }.compare_by_identity
        end

        # @param marks [Hash] as #marks returned it
        # @return [Curve] what those have done since, all in one band
        def since(marks)
          curve = Curve.new
          marks.each { |worker, mark| curve.add(Since.new(worker.row, mark)) unless worker.gone? }
          curve
        end

        private

        # @return [Curve] empty if none is known, as after an upgrade of the monitor
        def cold_before(number)
          last = @cold.keys.select { |other| other < number }.max
          (last && (@cold[last] || measured { |other| other == last })) || Curve.new
        end

        # Those that may be needed: the last one, and the one before it, in case the last is rolled back.
        def keep_cold(number)
          @cold.each_key { |cold| @cold[cold] ||= measured { |other| other == cold } if cold < number }
          @cold = @cold.max_by(2, &:first).to_h
        end

        def measured(&) = sum(method(:measure?), &)

        # What was prefaulted had it easier in its first jobs: it is no measure for a canary, which never is.
        def measure?(row) = row.prefaulted.first.zero?

        # @param jobs [#call] tells whether what a worker's jobs took counts
        def sum(jobs = ->(_row) { true }, &wanted)
          @dead.select { |number, _| wanted.call(number) }.values
               .concat(workers(&wanted).map { |worker| Curve.new.add(worker.row, jobs: jobs.call(worker.row)) })
               .inject(Curve.new, :merge)
        end

        def workers(&wanted)
          @roster.workers.select { |worker| worker.pidfd && wanted.call(worker.generation) && !@discarded.call(worker) }
        end

        def mark(row) = Mark.new(row.requests, row.failures, row.recents)

        # A row, as if what was before a mark had never been.
        Since = Struct.new(:row, :mark) do
          def requests = [row.requests - mark.requests, 0].max
          def failures = [row.failures - mark.failures, 0].max
          def first_jobs = row.jobs_since(mark.recents)
          def faults = []
        end
      end
    end
  end
end
