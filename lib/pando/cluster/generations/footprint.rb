# frozen_string_literal: true

require "pando/cluster/memory/allowance"

module Pando
  module Cluster
    class Generations
      # The memory of a generation: the summed PSS of its workers and its mold, each measured in turn within the
      # allowance, and their page faults since: a page that is written to for the first time is one more for all of
      # them together. Molds that will go, or may at any time, hold pages that go with them; those are not counted.
      #
      # Owned by Survey, in the monitor.
      #
      # @api private
      class Footprint
        # @param gauge [Memory::Gauge]
        def initialize(roster, gauge, allowance = Memory::Allowance.new)
          @roster = roster
          @gauge = gauge
          @allowance = allowance
          @pids = []
          @changed_at = 0.0
        end

        # Measures one process more, if it may.
        # @param members [Array<Child>] workers and mold
        # @param leavers [Array<Child>] whoever shares with them and will not stay
        # @param idle [Boolean] nothing has been done since the last look
        def look(members, leavers, idle: false, now: Sys.now)
          @members = members.map(&:pid)
          @leavers = leavers.map(&:pid)
          begin_anew(now) unless (@members | @leavers) == @pids
          return if idle && pss

          measure_one(now)
          @pss = @private = nil
          take_stock if known?
        end

        # @return [Boolean] whether each has been measured since one came or went: what one shares, the others have not
        def known? = @pids.any? && @pids.all? { |pid| @gauge.measured_at(pid) >= @changed_at }

        # @return [Boolean] whether it is worth looking again soon
        def wanting? = !known? && @allowance.left?(urgent: true)

        # @return [Integer, nil] bytes; nil: not known yet
        attr_reader :pss
        # @return [Integer, nil] bytes of them that one process has for itself
        attr_reader :private

        private

        def measure_one(now)
          oldest = @pids.min_by { |pid| @gauge.measured_at(pid) }
          return unless oldest && @allowance.left?(now, urgent: !known?)

          spent = @gauge.spent
          @gauge.measure(oldest)
          @allowance.spend(@gauge.spent - spent)
        end

        # What has come since a measurement is a process's own.
        def take_stock
          theirs = @members.sum { |pid| @gauge.pss(pid) }
          @private = theirs - @members.sum { |pid| shared(@gauge.last(pid)) }
          @pss = theirs + @leavers.sum { |pid| shared(@gauge.last(pid)) }
        end

        def begin_anew(now)
          @pids = @members | @leavers
          @changed_at = now
          @pss = @private = nil
          @gauge.keep([Process.pid, *@roster.everybody.filter_map(&:pid)])
        end

        def shared(usage) = usage ? [usage.pss - usage.private, 0].max : 0
      end
    end
  end
end
