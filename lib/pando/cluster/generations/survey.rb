# frozen_string_literal: true

require "pando/cluster/generations/mold_releaser"
require "pando/cluster/generations/survey/footprint"
require "pando/refork/policy"
require "pando/sys/scheduler"

module Pando
  module Cluster
    class Generations
      # Measures the current generation at intervals, at little cost, for a policy that decides by figures: requests and
      # CPU time of its workers, and its memory. It pauses while a worker starts or leaves.
      #
      # Owned by Reforks, in the monitor.
      class Survey
        include Brief
        extend Serializable

        # Seconds between two measurements, and for each worker: one takes some 25 microseconds.
        TICK = 0.5
        EACH = 0.05
        # The same while its memory is not known.
        HASTE = 0.02

        serialize number: :integer, line: :integer, began_at: :number

        # @return [Float] when the next measurement is due
        attr_reader :due

        # @param options [#mold] a mold that may be released is not counted, see MoldReleaser
        def initialize(roster, generations, gauge, options)
          @roster = roster
          @generations = generations
          @options = options
          @footprint = Footprint.new(gauge)
          @record = ServiceRecord.new
          @due = 0.0
        end

        # @return [Refork::Vitals, nil] nil: it is not time, or a worker starts or leaves
        def look(reforks, now = Sys.now)
          generation = @generations.current
          return if now < due || generation.nil?

          workers = @roster.staying_workers
          @due = now + [TICK, workers.size * EACH].max
          return if workers.empty? || !workers.all? { |worker| worker.ready? && !@generations.outdated?(worker) }

          measure(generation, workers, now)
          vitals(reforks, workers.map(&:requests), now)
        end

        # The whole server has stood still, which is no idle time.
        # @param seconds [Float] until now
        def stood_still(seconds) = @began_at &&= @began_at + seconds

        private

        def vitals(reforks, requests, now)
          Refork::Vitals.new(generation: @line, reforks: reforks, seconds: now - @began_at, workers: requests.size,
                             age: @served, most: requests.max, warmed: warmed(requests),
                             pss: @footprint.pss, obstacle: @footprint.obstacle, private: @footprint.private,
                             cpu: @record.cpu, mold_cpu: @record.mold_cpu)
        end

        # The first requests warm most.
        def warmed(requests)
          most = Math.log(1 + requests.max)
          most.zero? ? requests.size.to_f : requests.sum { |count| Math.log(1 + count) } / most
        end

        def measure(generation, workers, now)
          begin_with(generation, now) unless continues?(generation)
          @number = generation.number
          before = @served
          @record.add(workers)
          @served = @record.requests
          members = [*workers, (generation.mold if mold_stays?(generation, workers))].select { |child| child&.pidfd }
          @footprint.measure(members, leavers(members), idle: before == @served, now: now)
          @due = now + HASTE if @footprint.incomplete?
        end

        # Those that share memory with the members. Processes of another line share it only with each other.
        def leavers(members)
          lines = members.map(&:line)
          others = [*@roster.molds, *@roster.workers.select(&:draining?)] - members
          others.select { |child| child.pidfd && lines.include?(child.line) }
        end

        # Only its mold is new, as after the death of a mold.
        def continues?(generation)
          return true if generation.number == @number

          generation.heal? && !generation.source.nil? && !@line.nil? && !@generations.passed?(@line)
        end

        def mold_stays?(generation, workers)
          MoldReleaser.keeps?(@options, generation, workers.size)
        end

        # The CPU time of a mold since its promotion is part of the cost of the refork. A mold that booted from cold has
        # loaded the app, which does not count.
        def begin_with(generation, now)
          @line = generation.number
          @began_at = now
          @footprint.begin_anew
          @record = ServiceRecord.new
          promoted = Sys::Scheduler.cpu_time(generation.mold.pid) if generation.source && generation.mold
          @record.share(promoted || 0.0)
        end

        # The requests and the CPU time of each slot since a generation began to serve. A worker that replaces a dead
        # one continues its slot. An upgrade of the monitor forgets the dead workers.
        class ServiceRecord
          extend Serializable

          serialize shared: :number

          # The worker that serves in a slot, what it has done, and what its predecessors had done: requests, and
          # seconds of CPU.
          Slot = Struct.new(:worker, :requests, :cpu, :requests_before, :cpu_before) do
            def all_requests = requests + requests_before
            def all_cpu = cpu + cpu_before
          end

          def initialize(clock = Sys::Scheduler)
            @clock = clock
            @shared = 0.0
            @slots = {}
          end

          # @param seconds [Float] of CPU that were spent for all workers together
          def share(seconds) = @shared += seconds

          def add(workers)
            @slots = workers.to_h { |worker| [worker.slot, slot(worker, @slots[worker.slot])] }
          end

          def requests = @slots.each_value.sum(&:all_requests) / @slots.size.to_f

          def cpu = mold_cpu + (@slots.each_value.sum(&:all_cpu) / @slots.size)

          def mold_cpu = @shared / @slots.size

          private

          def slot(worker, last)
            same = last && last.worker.equal?(worker)
            before = same ? [last.requests_before, last.cpu_before] : [last&.all_requests || 0, last&.all_cpu || 0.0]
            # the kernel has no figure for a process that has just died: the last one counts
            Slot.new(worker, worker.requests, @clock.cpu_time(worker.pid) || (same ? last.cpu : 0.0), *before)
          end
        end

        serialize record: ServiceRecord
      end
    end
  end
end
