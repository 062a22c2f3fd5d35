# frozen_string_literal: true

require "pando/cluster/restart_throttles"
require "pando/sys/memory"

module Pando
  module Cluster
    module Memory
      # Whether memory is short, and why: all processes take more than they may, their control group is nearly full, or
      # processes wait for memory. Decides when the next worker may leave to relieve it: one at a time, of whatever
      # pool. Owned by the monitor; each pool's guard asks it.
      class Shortage
        include Brief
        include Wording

        # Percent below its limit from which on a control group is checked more often.
        NEAR = 10
        # Seconds in which the departure of a worker should help. If it does not, the next time is twice as long.
        RESPITE = 2.0
        LONGEST_RESPITE = 120.0
        # Seconds between two departures when memory is critical.
        LEAST = 0.025

        # @param options [#memory] Limits, which a reload may change
        # @param group [Sys::ControlGroup] @param pressure [#call] percent, or nil
        def initialize(options, gauge, group: Sys::ControlGroup.new, pressure: Sys::Memory.method(:pressure))
          @options = options
          @gauge = gauge
          @group = group
          @pressure = pressure
          @short = @critical = @near = false
          @respite = Backoff.new(LONGEST_RESPITE, first: RESPITE)
          @relieved_at = 0.0
          @guards = []
        end

        def join(guard) = @guards << guard

        def short? = @short

        def near? = @near

        # Emits an event when a shortage begins, and when it ends.
        # @param pids [Array<Integer>] of the processes that count; one that was killed may take a while to die
        # @return [String, nil] the reason, nil: there is enough
        def look(pids)
          reason = by_group || by_total(pids) || by_pressure
          @respite.reset unless reason
          return reason if @short == !reason.nil?

          @short = !reason.nil?
          about = { pool: nil } # it concerns all pools
          reason ? Events.emit("memory.short", **about, reason: reason) : Events.emit("memory.recovered", **about)
          reason
        end

        # Whether a worker may leave now. If the control group was too full, it waits for no other departure.
        def relief_due?(guard, now)
          return now - @relieved_at >= LEAST if @critical

          @respite.over?(now) && !guard.departing? && @guards.none?(&:seeing_off?)
        end

        # A worker was told to leave.
        def relieved(now)
          @relieved_at = now
          @respite.fail(now)
        end

        private

        def limits = @options.memory

        def by_total(pids)
          return unless limits.total && (total = @gauge.total(pids)) > limits.total

          "all processes together take #{mebibytes(total)} of #{mebibytes(limits.total)}"
        end

        def by_group
          memory = limits.group && @group.memory
          @near = !memory.nil? && memory.percent > limits.group - NEAR
          @critical = !memory.nil? && memory.percent > (limits.group + 100) / 2.0
          return unless memory && memory.percent > limits.group

          "#{mebibytes(memory.used)} of the #{mebibytes(memory.limit)} of the control group are in use"
        end

        def by_pressure
          waiting = limits.pressure && @pressure.call
          return unless waiting && waiting > limits.pressure

          "memory is short (processes wait for it #{waiting}% of the time)"
        end
      end

      # Whether the kernel has killed processes because memory was out. It counts them, in the control group
      # (memory.events; memory.oom_control of version 1) or on the machine, but does not name them: they die of SIGKILL
      # as others do. Owned by the monitor.
      class OomWatch
        MACHINE = "/proc/vmstat"
        # Seconds between two looks at the counter.
        TICK = 0.25
        # Seconds in which the deaths of several victims are noticed one by one.
        MEMORY = 2.0

        # @param paths [Array<String>] files with a line "oom_kill N"; the first one that has it counts
        def initialize(paths = [Sys::ControlGroup.new.oom_counter, MACHINE])
          @path = paths.compact.find { |path| count(path) }
          @seen = read
          @looked_at = Sys.now
        end

        # Called at each turn of the monitor's loop: at a death nobody can tell when the counter rose.
        def look(now = Sys.now)
          note(now) if now - @looked_at >= TICK
        end

        # @return [Boolean] whether the kernel has probably killed it for memory
        def victim?(child)
          ending = child.ending
          !!ending&.killed? && ending.number == Signal.list["KILL"] && !child.condemned? && killed_recently?
        end

        def killed_recently?
          note
          !@killed_at.nil? && Sys.now - @killed_at < MEMORY
        end

        private

        def note(now = Sys.now)
          @looked_at = now
          seen = read || @seen # nil: there is no descriptor left
          @killed_at = now if seen != @seen
          @seen = seen
        end

        def read = @path && count(@path)

        def count(path)
          File.read(path)[/^oom_kill (\d+)$/, 1]&.to_i
        rescue SystemCallError
          nil
        end
      end
    end
  end
end
