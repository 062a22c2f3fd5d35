# frozen_string_literal: true

module Pando
  module Cluster
    # Replaces workers whose row says that a major GC is due: one after another, the successor first, and only while
    # nothing else is going on. It waits a while for an expected refork, which replaces all workers anyway. Owned by a
    # Pool, in the monitor.
    class Replacements
      # Seconds between two looks.
      TICK = 1.0
      # Seconds between two replacements, and the most that it waits for a refork.
      SPACING = 15.0
      PATIENCE = 60.0
      # Seconds of CPU time after which a worker may be replaced, which takes some hundredths of a second.
      LIFE = 5.0
      REASON = "Ruby wants a full collection, which would make private what it shares"

      # @param generations [#settled?, #reforks, #outdated?]
      # @param rollout [#awaited?, #size]
      # @param conditions [#obstacle] see Generations::Conditions
      def initialize(roster, generations, rollout, conditions)
        @roster = roster
        @generations = generations
        @rollout = rollout
        @conditions = conditions
        @looked_at = @replaced_at = -SPACING
      end

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

      # The oldest of those that have served long enough.
      def longest_serving
        due = @roster.ready_workers.select { |worker| worker.major_gc_due? && worker.sample&.cpu.to_f >= LIFE }
        due.max_by(&:requests)
      end

      def disturbed?
        !@generations.settled? || !@conditions.obstacle.nil? || incomplete? ||
          @roster.workers.any? do |worker|
            !worker.ready? || worker.replacement_wanted? || @generations.outdated?(worker)
          end
      end

      def incomplete? = @rollout.size.times.any? { |slot| @rollout.awaited?(slot) }
      def waits?(now) = now < @since + PATIENCE && @generations.reforks.expected?
    end
  end
end
