# frozen_string_literal: true

require "pando/sys"

module Pando
  module Cluster
    class Generations
      class Survey
        # The memory of a generation: the PSS of its workers and its mold. Each process is measured in turn; between two
        # measurements its page faults are added, since each first write to a page adds a page to the sum. Processes
        # that share memory with the generation but will leave are measured too, and only what they share counts.
        #
        # When a process comes or goes, the shares of all others change at once, but they are measured only in turn.
        # Until then each is taken to have got, or given up, an equal part of what that process shares.
        #
        # Measuring takes at most a thousandth of a CPU in the long run. What is new is measured at once, and the CPU
        # time for that is saved later. Owned by Survey, in the monitor.
        class Footprint
          # Of one CPU.
          SHARE = 0.001
          # Seconds of CPU that may be saved up, and that are there at first.
          SAVED = 0.05
          # Seconds of CPU that may be borrowed.
          OWED = 1.0

          # A process: since when it counts, when it was measured last since then (nil: not yet), bytes that it shared
          # then, and the change of that since: its part of what others have left, less its part of what others have
          # got.
          Part = Struct.new(:came_at, :measured_at, :shared, :change) do
            # @return [Float] that it is taken to have now
            def shares = [shared + change, 0.0].max
          end

          # Bytes, and bytes of them that are private to one process; nil: not known yet.
          attr_reader :pss, :private

          def initialize(gauge, now = Sys.now)
            @gauge = gauge
            @budget = SAVED
            @filled_at = now
            begin_anew
          end

          # Another generation begins: nothing that was measured before counts.
          def begin_anew
            @parts = {}
            @pss = @private = nil
          end

          # Measures one more process, if the budget allows it.
          # @param leavers [Array<Child>] those that share memory with them and will not stay
          # @param idle [Boolean] whether nothing was served since the last time
          def measure(members, leavers, idle: false, now: Sys.now)
            members, leavers = [members, leavers].map { |children| children.map(&:pid) }
            follow(members | leavers, now)
            return if idle && pss && @parts.each_value.all? { |part| part.measured_at >= @changed_at }

            measure_one(now)
            read_samples
            known? ? add_up(members, leavers) : @pss = @private = nil
          end

          # @return [String, nil] why it cannot be known
          def obstacle = @gauge.obstacle

          def incomplete? = !known? && obstacle.nil? && affordable?(urgent: true)

          # @param urgent [Boolean] whether CPU time may be borrowed
          def affordable?(now = Sys.now, urgent: false)
            @budget = [@budget + ((now - @filled_at) * SHARE), SAVED].min
            @filled_at = now
            @budget > (urgent ? -OWED : 0)
          end

          def spend(seconds) = @budget -= seconds

          private

          # Whether each has been measured since it came.
          def known? = @parts.any? && @parts.all? { |pid, part| part.measured_at && @gauge.last(pid) }

          def follow(pids, now)
            gone = (@parts.keys - pids).map { |pid| @parts.delete(pid) }
            come = pids - @parts.keys
            return if gone.empty? && come.empty?

            @changed_at = now
            @pss = @private = nil
            distribute(gone.sum(0.0, &:shares), @parts.values, now)
            come.each { |pid| @parts[pid] = Part.new(now, nil, 0.0, 0.0) }
          end

          # @param bytes [Float] that the others have in equal parts from then on, or no longer have
          def distribute(bytes, others, time)
            others.each { |part| part.change += bytes / others.size if part.measured_at&.< time }
          end

          def measure_one(now)
            oldest = @parts.keys.min_by { |pid| sampled_at(pid) }
            return unless oldest && obstacle.nil? && affordable?(now, urgent: !known?)

            spent = @gauge.spent
            @gauge.measure(oldest, budgeted: true)
            spend(@gauge.spent - spent)
          end

          # @return [Float] 0.0: not since it came
          def sampled_at(pid) = @gauge.measured_at(pid).then { |time| time < @parts[pid].came_at ? 0.0 : time }

          # Takes over all new measurements, also those that others have caused.
          def read_samples
            @parts.each do |pid, part|
              time = sampled_at(pid)
              next if time.zero? || time == part.measured_at

              first = part.measured_at.nil?
              part.measured_at = time
              part.shared = shared(@gauge.last(pid))
              part.change = 0.0
              subtract_from_earlier(part) if first
            end
          end

          # It has come, and maps pages that those before it had for themselves.
          def subtract_from_earlier(newcomer)
            others = @parts.each_value.select { |part| part.came_at < newcomer.came_at }
            distribute(-newcomer.shared, others, newcomer.came_at)
          end

          # Growth since the last measurement is private.
          def add_up(members, leavers)
            grown = members.sum { |pid| @gauge.pss(pid) - @parts[pid].shared }
            @private = grown.round
            @pss = (grown + [*members, *leavers].sum { |pid| @parts[pid].shares }).round
          end

          def shared(usage) = [usage.pss - usage.private, 0].max.to_f
        end
      end
    end
  end
end
