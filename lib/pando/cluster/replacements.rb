# frozen_string_literal: true

module Pando
  module Cluster
    # Replaces workers that have asked for it in their row, at a quiet moment: one after another, the successor first,
    # and only while nothing else is going on. Owned by a Pool, in the monitor.
    class Replacements
      # Seconds between two looks, and between two replacements.
      TICK = 1.0
      SPACING = 15.0
      # Seconds of CPU time after which a worker may be replaced, which takes some hundredths of a second.
      LIFE = 5.0
      REASON = "it has asked to be replaced at a quiet moment"

      def initialize(roster, generations, rollout, conditions)
        @roster = roster
        @generations = generations
        @rollout = rollout
        @conditions = conditions
        @looked_at = @replaced_at = -SPACING
      end

      # The worker that has served longest goes first.
      def reconcile(now = Sys.now)
        return if now < [@looked_at + TICK, @replaced_at + SPACING].max

        @looked_at = now
        asking = @roster.ready_workers.select { |one| one.asks_for_replacement? && one.sample&.cpu.to_f >= LIFE }
        return if asking.empty? || disturbed?

        @replaced_at = now
        asking.max_by(&:requests).replacement_reason ||= REASON
      end

      private

      def disturbed?
        !@generations.settled? || !@conditions.obstacle.nil? ||
          @rollout.size.times.any? { |slot| @rollout.awaited?(slot) } ||
          @roster.staying_workers.any? do |worker|
            !worker.ready? || worker.replacement_wanted? || @generations.outdated?(worker)
          end
      end
    end
  end
end
