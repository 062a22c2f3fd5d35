# frozen_string_literal: true

require "pando/cluster/backoff"
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
    end
  end
end
