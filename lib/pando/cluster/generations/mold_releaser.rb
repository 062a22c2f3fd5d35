# frozen_string_literal: true

require "pando/events"
require "pando/mebibytes"

module Pando
  module Cluster
    class Generations
      # Lets the mold go once its workers have written to much of what they shared with it: the old pages are then its
      # alone, and of use only to who is forked next. When a process is wanted, or a reload is about to begin, a mold
      # is forked from the best worker, as if the old one had died (docs/sharing.md, "Letting the mold go").
      #
      # Owned by a Pool, in the monitor.
      #
      # @api private
      class MoldReleaser
        include Mebibytes

        # Seconds between two looks, in which nobody came or went before the mold goes, and between two measurements.
        TICK = 1.0
        CALM = 2.0
        PACE = 5.0
        # What it must have for itself to be let go: bytes, and a share of all it has. Without YJIT it hardly comes to
        # that after a refork.
        MUCH = 16 * 1_048_576
        SHARE = 0.1
        # Seconds; a mold that is missed sooner than this was worth its memory, and its successor stays.
        WORTH = 600.0
        # Workers: a request that is deadly may kill two of them, and then somebody must be left to fork a mold from. If
        # fewer are wanted, it comes back.
        LEAST = 3

        # @param cluster [#roster, #generations, #rollout, #services, #options] the pool; of its options mold:
        # @param conditions [#obstacle] see Conditions
        # @param gauge [Memory::Gauge]
        def initialize(cluster, conditions, gauge)
          @roster = cluster.roster
          @generations = cluster.generations
          @rollout = cluster.rollout
          @services = cluster.services
          @options = cluster.options
          @conditions = conditions
          @gauge = gauge
          @looked_at = @measured_at = -PACE
        end

        # Called at each turn of the monitor's loop.
        # @param reloading [Boolean] a reload waits for a mold to fall back to
        def reconcile(reloading, now = Sys.now)
          return recall(reloading, now) if @generations.released?
          return if @options.mold == :keep || now < @looked_at + TICK

          @looked_at = now
          return if now < calm_since(now) + CALM

          gain(now)&.then { |usage| release(usage, now) }
        end

        # @return [Float, nil] when it must look again
        def due = (@looked_at + TICK if @options.mold != :keep && @generations.settled? && !@generations.released?)

        private

        # @return [Float] since when the same processes have been there, and all went well
        def calm_since(now)
          before = @company
          @company = @roster.to_a
          @calm_since = now unless @company == before && calm?
          @calm_since
        end

        def calm?
          @generations.settled? && @roster.ready_workers.size >= LEAST && @roster.all?(&:ready?) &&
            !wanted? && @conditions.obstacle.nil?
        end

        def wanted? = @rollout.wanting? || @services.wanting?

        # @return [Sys::Memory::Usage, nil] what would come back; nil: too little, or it had better stay
        def gain(now)
          return if now < @measured_at + PACE || @missed == @generations.current.number || irreplaceable?

          @measured_at = now
          usage = @gauge.measure(@generations.current.mold.pid)
          usage if usage && (@options.mold == :release || usage.private >= [MUCH, usage.rss * SHARE].max)
        end

        # Nobody could fork another one, or the last one that a worker has forked was none to serve from.
        def irreplaceable? = @generations.heir.nil? || @generations.suspension.failures.positive?

        def release(usage, now)
          @released_at = now
          @generations.release_mold("#{mebibytes(usage.private)} of it are its alone")
        end

        def recall(reloading, now)
          return unless wanted? || stays? || (reloading && @generations.heir)

          generation = @generations.recall_mold or return
          @measured_at = -PACE
          @missed = generation.number if @options.mold == :auto && now < @released_at.to_f + WORTH
        end

        # It would not be let go now; it may have been before a worker less was wanted, or under other settings.
        def stays? = @options.mold == :keep || @rollout.size < LEAST
      end
    end
  end
end
