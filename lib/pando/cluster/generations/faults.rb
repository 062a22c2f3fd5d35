# frozen_string_literal: true

module Pando
  module Cluster
    class Generations
      # What follows for a generation when a worker of it fails, or cannot be had: the next one waits, or the generation
      # is given up.
      #
      # @api private
      module Faults
        # Workers in a row that fail to start, after which a mold is given up that nobody serves from. So often may the
        # kernel refuse one, too, at the first boot.
        LAST_TRY = 5

        # Children whose self-check did not come back, after which their mold is given up.
        UNFIT = 2

        # It ended by itself: before it was ready, or hardly later.
        # @param cause [Symbol] :refused: the kernel had no process for it; :passing: it could not have what it needs to
        #   begin, see PassingFault; :job: a job may have ended it; :own
        def worker_failed(child, reason, cause: :own)
          generation = serving_generation(child) or return
          return refused(generation, reason) if excused?(generation, cause)

          generation.backoff.fail(reason)
          bad = generation.equal?(upcoming) ? !tolerable?(generation, cause) : hopeless?(generation)
          return discard(generation, reason, child.detail, told: true) if bad

          @evaluation.worker_failed(reason) unless cause == :job || generation.equal?(upcoming)
        end

        # A worker could not be had, and the generation is not to blame. Where one has served it is tried for ever.
        # @param reason [String]
        def refused(generation, reason)
          generation.backoff.fail(reason, refused: true)
          return despair(reason) if proven?

          discard(generation, reason, nil) if generation.backoff.refusals >= LAST_TRY
        end

        # Its self-check did not come back. A fork may catch a lock at a bad moment once; twice it is the mold's fault.
        def child_unfit(child, reason)
          generation = serving_generation(child) or return
          generation.backoff.fail(reason)
          return if generation.count_unfit < UNFIT
          return discard(generation, reason, child.detail) if generation.equal?(upcoming)
          return roll_back(reason) if watching?

          generation.end_mold("discarded")
          lose_current(reason)
          @backoff.fail
        end

        # It wants to go and has not done anything: the next one waits, lest we fork for ever.
        def worker_wasted(child, reason = nil) = serving_generation(child)&.backoff&.fail(reason)

        private

        def hopeless?(generation) = generation.backoff.failures >= LAST_TRY && @roster.ready_workers.empty?
        def tolerable?(generation, cause) = cause == :job && generation.backoff.failures < LAST_TRY

        # A passing fault is believed of a release that has served.
        def excused?(generation, cause)
          return cause == :refused unless cause == :passing

          proven? && (generation.established? || generation.purpose != :reload)
        end
      end
    end
  end
end
