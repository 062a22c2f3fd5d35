# frozen_string_literal: true

module Pando
  module Cluster
    class Generations
      # What follows when a generation has been judged: by Canary::Evaluation, by what its source has come to (Promotion),
      # or, where a reload is of several pools, by what has become of the others.
      #
      # @api private
      module Verdicts
        # The canary has proved itself, or need not: the others may be replaced.
        def roll = upcoming.enter(:rolling)

        # @param reason [String] why the canary has not
        def give_up(reason) = discard(upcoming, "its canary did not prove itself: #{reason}", nil)

        # The upcoming generation lacks a thread, or no worker could be had for it. Nothing has failed: an event of its
        # own has said more, if it is news.
        # @param reason [String]
        def refuse(reason)
          generation = upcoming
          @upcoming = nil
          @lost_threads.forget_trial
          @retired.discard(generation.number)
          @evaluation.discarded(generation)
          generation.enter(:refused, reason: reason)
          generation.end_mold("refused")
          @roster.call_off(generation.number, "its generation was refused")
        end

        # The worker that was to fork the next mold must not, or could not come to it.
        def promotion_refused(mold, reason)
          wanted = @wanted if upcoming&.purpose == :refork
          @reforks.refuse(reason, wanted, slot: mold.source.slot, source: mold.source.pid)
        end

        # The worker that was to fork the next mold must not, and another one is asked.
        # @return [Boolean] false: that mold is not wanted any more
        def promotion_declined(mold, reason)
          return false unless mold.source.worker?

          @changed_state.declined(mold.source, reason)
          @promotion.declined(mold, reason)
        end

        # In place of the worker that was to fork the upcoming mold.
        # @param worker [Child] @param reason [String] why
        def ask(worker, reason)
          @spawner.cancel(upcoming.mold)
          @lost_threads.forget_trial
          Events.emit("source.changed", generation: upcoming.number, source: worker.pid, slot: worker.slot,
                                        requests: worker.requests, reason: reason)
          upcoming.fork_from(worker, @spawner.mold_from(worker, upcoming.number))
          fail_mold(nil, unstarted, :refused) unless upcoming.mold
        end

        # No worker has come to forking its mold. Nothing has failed.
        # @param reason [String]
        def call_off(reason)
          source = upcoming.source
          @spawner.cancel(upcoming.mold)
          return discard(upcoming, reason, nil) if upcoming.heal?

          @reforks.called_off(reason, @wanted, slot: source.slot, source: source.pid)
          refuse(reason)
        end

        # All workers are to be replaced from the last good mold.
        def roll_back(reason) = take_back("its workers do not prove themselves: #{reason}")

        # The current generation is good: the mold that was kept is no longer needed.
        def prove_for_good
          @reforks.proved(current)
          let_go("generation #{current.number} has proved itself")
        end

        # The current generation is not watched any longer: what comes next must not wait for that.
        def end_watch(reason)
          let_go(reason) if watching?
        end

        # It shall not serve, for a reason that is not its own. One that serves for good goes on.
        # @param generation [Generation]
        def withdraw(generation, reason)
          return discard(generation, reason, nil) if generation.equal?(upcoming)

          take_back(reason) if generation.equal?(current) && watching?
        end

        private

        # The upcoming generation's mold has not come up.
        # @param child [Child, nil] @param cause [Symbol] see Faults#worker_failed
        def fail_mold(child, reason, cause)
          excused = proven? && upcoming.booting? && excused?(upcoming, cause)
          return discard(upcoming, reason, child&.detail) unless excused

          purpose = upcoming.purpose
          source = upcoming.source
          refuse(reason)
          put_off(purpose, source, reason, cheap: cause == :refused)
        end

        # The kernel has no process for a mold: nothing has failed. It is tried again, and a user that asked is told.
        # @param cheap [Boolean] nothing was loaded for it: beside workers that serve it may be tried often, too
        # @return [nil]
        def put_off(purpose, source, reason = unstarted, cheap: true)
          return @reforks.put_off(reason, @wanted, slot: source.slot, source: source.pid) if purpose == :refork
          return if %i[reload reboot].include?(purpose)

          source ? @unwilling += [source] : @unwilling = []
          @backoff.fail(refused: cheap || @roster.ready_workers.empty?)
          despair(reason)
          nil
        end

        # A try has failed. If nobody serves, that may be the end of the server.
        # @return [Boolean]
        def despair(reason, detail = nil) = @roster.ready_workers.empty? && @give_up.call(reason, detail)

        def take_back(reason)
          bad = current
          @current = @evaluation.release
          discard(bad, reason, nil)
          current.enter(:current)
        end

        # @param told [Boolean] whether an event of its own has told the detail: it is not to come last as well
        def discard(generation, reason, detail, told: false)
          drop(generation)
          @retired.discard(generation.number)
          @evaluation.discarded(generation)
          generation.source&.then { |source| source.excluded_as_source = true unless source.declined_while_busy? }
          @reforks.failed(generation, reason)
          generation.enter(:discarded, reason: reason)
          generation.end_mold("discarded")
          @roster.call_off(generation.number, "its generation was discarded") # they would take others' places
          delay = @backoff.fail
          return if !current&.forks? && despair(reason, (detail unless told))

          Events.emit("refork.postponed", seconds: delay.round(2), reason: reason)
        end

        # It is neither the current generation nor the upcoming one any more.
        def drop(generation)
          @lost_threads.forget_trial if generation.equal?(upcoming)
          @upcoming = nil if generation.equal?(upcoming)
          @current = nil if generation.equal?(current)
        end
      end
    end
  end
end
