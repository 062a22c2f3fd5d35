# frozen_string_literal: true

module Pando
  module Cluster
    class Generations
      # Stops the mold once its workers have written to many of the pages that they shared with it: the old pages are
      # then private to the mold, and useful only for the next fork. When a process is needed, or a reload is about to
      # begin, a mold is forked from the best worker, as if the old one had died (docs/sharing.md). Owned by a Pool.
      class MoldReleaser
        include Wording

        # Seconds between two looks, seconds without a new or ended process before the mold goes, and seconds between
        # two measurements.
        TICK = 1.0
        CALM = 2.0
        PACE = 5.0
        # The least private memory of a mold that is stopped: bytes, and a share of all its memory. Without YJIT a mold
        # hardly reaches that after a refork.
        MUCH = 16 * 1_048_576
        SHARE = 0.1
        # If a mold is needed again within this many seconds, it was worth its memory, and its successor stays.
        WORTH = 600.0
        # The fewest workers without a mold: a deadly request may kill two, and one must be left to fork a mold.
        LEAST = 3

        # A node forks a mold when its jobs have ended. How long that takes is known if one has done so.
        # @param workers [Integer]
        # @return [Boolean] whether this generation's mold stays, however much of its memory is private to it
        def self.keeps?(options, generation, workers)
          options.mold == :keep || workers < LEAST ||
            (options.jobs && (generation.forked_within || Promotion::PATIENCE) >= Promotion::PATIENCE)
        end

        def initialize(pool, conditions, gauge)
          @roster = pool.roster
          @generations = pool.generations
          @rollout = pool.rollout
          @services = pool.services
          @options = pool.options
          @conditions = conditions
          @gauge = gauge
          @looked_at = @measured_at = -PACE
        end

        # @param reload [Reload] it may wait for a mold to fall back to; or it has failed: then a cold boot would not
        #   bring the release that serves
        def reconcile(reload, now = Sys.now)
          @reload = reload
          return recall(now) if @generations.released?
          return if @options.mold == :keep || now < @looked_at + TICK

          @looked_at = now
          return if now < calm_since(now) + CALM || now < @measured_at + PACE || indispensable?

          @measured_at = now
          usage = @gauge.measure(@generations.current.mold.pid)
          release(usage, now) if usage && worth?(usage)
        end

        def due = (@looked_at + TICK if @options.mold != :keep && @generations.settled? && !@generations.released?)

        private

        # Since when the same processes have been there without trouble.
        def calm_since(now)
          before = @processes
          @processes = @roster.to_a
          @calm_since = now unless @processes == before && calm?
          @calm_since
        end

        def calm?
          @generations.settled? && @roster.ready_workers.size >= LEAST &&
            @roster.all? { |child| child.ready? || child.draining? } && !process_needed? && @conditions.obstacle.nil?
        end

        def process_needed? = @rollout.wanting? || @services.wanting?

        # It was missed, or no worker could fork another mold, or the last mold that a worker has forked has failed.
        def indispensable?
          @missed == @generations.current.number || @generations.healing_source.nil? ||
            @generations.reforks.failures.positive? || keeps?
        end

        def keeps? = @reload.failed? || self.class.keeps?(@options, @generations.current, @rollout.size)

        def worth?(usage) = @options.mold == :release || usage.private >= [MUCH, usage.rss * SHARE].max

        def release(usage, now)
          @released_at = now
          @generations.release_mold("#{mebibytes(usage.private)} of its memory are private to it")
        end

        # A mold also comes back if it would not be stopped now: fewer workers are wanted, or the settings have changed.
        def recall(now)
          needed = process_needed?
          return unless needed || ((keeps? || @reload.awaits_mold?) && @generations.healing_source)

          generation = @generations.recall_mold(needed: needed) or return
          @measured_at = -PACE
          @missed = generation.number if @options.mold == :auto && now < @released_at.to_f + WORTH
        end
      end
    end
  end
end
