# frozen_string_literal: true

require "pando/cluster/brief"
require "pando/events"
require "pando/mebibytes"
require "pando/sys/memory"

module Pando
  module Cluster
    module Memory
      # Whether memory is short, and by what sign: all processes take more than they may, their control group is
      # nearly full, or somebody waits for memory.
      #
      # Owned by the memory guard.
      #
      # @api private
      class Shortage
        include Brief
        include Mebibytes

        # How many percent before its limit a group is looked at more often.
        NEAR = 10

        # @param options [#memory] Limits, which a reload may change
        # @param gauge [Gauge]
        # @param group [Sys::ControlGroup] @param pressure [#call] percent, or nil
        def initialize(options, gauge, group: Sys::ControlGroup.new, pressure: Sys::Memory.method(:pressure))
          @options = options
          @gauge = gauge
          @group = group
          @pressure = pressure
          @short = @critical = @near = false
        end

        # @return [Boolean] whether, at the last look, memory was short
        def short? = @short

        # @return [Boolean] whether, at the last look, it was not far from being short
        def near? = @near

        # @return [Boolean] whether, at the last look, the control group was so full that nothing could be waited for
        def critical? = @critical

        # Its begin and its end are told.
        # @return [String, nil] the reason, nil: there is enough
        def look
          reason = by_group || by_total || by_pressure
          return reason if @short == !reason.nil?

          @short = !reason.nil?
          about = { pool: nil } # whoever has looked
          reason ? Events.emit("memory.short", **about, reason: reason) : Events.emit("memory.recovered", **about)
          reason
        end

        private

        def limits = @options.memory

        def by_total
          return unless limits.total && (total = @gauge.total) > limits.total

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

          "memory is short (#{waiting}% of the time somebody waits for it)"
        end
      end
    end
  end
end
