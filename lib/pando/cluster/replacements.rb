# frozen_string_literal: true

module Pando
  module Cluster
    # Replaces workers that had better be, by what they say in their rows: one after another, the successor first, and
    # only while nothing else is going on. Where a refork is to be expected it is waited for, for a while: it replaces
    # them all.
    #
    # Owned by a Pool, in the monitor.
    #
    # @api private
    class Replacements
      # Seconds between two looks.
      TICK = 1.0
      # Seconds from one to the next, and that a refork is waited for.
      SPACING = 15.0
      PATIENCE = 60.0
      # Seconds of CPU time that a worker is worth: to replace it takes some hundredths of a second.
      LIFE = 5.0
      REASON = "Ruby wants a full collection, which would make private what it shares"

      # @param generations [#settled?, #refork_expected?, #outdated?]
      # @param rollout [#awaited?, #size]
      # @param conditions [#obstacle] see Generations::Conditions
      def initialize(roster, generations, rollout, conditions)
        @roster = roster
        @generations = generations
        @rollout = rollout
        @conditions = conditions
        @looked_at = @replaced_at = -SPACING
      end

      # Called at each turn of the monitor's loop.
      def reconcile(now = Sys.now)
        return if now < @looked_at + TICK

        @looked_at = now
        worker = longest_serving or return @since = nil
        @since ||= now
        return if now < @replaced_at + SPACING || disturbed? || waits?(now)

        @replaced_at = now
        worker.replacement_reason ||= REASON
      end

      private

      # The oldest of those that have been worth their fork.
      def longest_serving
        @roster.ready_workers.select { |worker| worker.major_gc_due? && worker.sample&.cpu.to_f >= LIFE }.max_by(&:requests)
      end

      def disturbed?
        !@generations.settled? || !@conditions.obstacle.nil? || incomplete? ||
          @roster.workers.any? { |worker| !worker.ready? || worker.replacement_wanted? || @generations.outdated?(worker) }
      end

      def incomplete? = @rollout.size.times.any? { |slot| @rollout.awaited?(slot) }
      def waits?(now) = now < @since + PATIENCE && @generations.refork_expected?
    end
  end
end
