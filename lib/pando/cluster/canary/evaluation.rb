# frozen_string_literal: true

require "pando/cluster/canary/comparison"
require "pando/cluster/canary/records"
require "pando/cluster/canary/trial"
require "pando/cluster/options"

module Pando
  module Cluster
    module Canary
      # Whether a new generation does as well as the one before: a Trial of its first worker, and after the rollout a
      # RolloutWatch over all workers, during which the old mold is kept (docs/canary.md). Owned by Generations.
      class Evaluation
        include Brief

        # The criteria when the user requires none: long enough to see whether threads come back.
        THREADS_ONLY = Criteria.new(requests: 0, seconds: 0.0, longest: 30.0).freeze
        private_constant :THREADS_ONLY

        # The last good generation, whose mold is kept during the watch; nil: there is no watch.
        attr_reader :kept

        # @param options [#canary, #workers, #jobs] a reload may change the criteria; canary nil: there are none
        def initialize(roster, options, generations, heard_at)
          @heard_at = heard_at
          @roster = roster
          @options = options
          @generations = generations
          @records = Records.new(roster, generations.method(:discarded?))
        end

        # @return [Boolean] whether a watch has ended
        def reconcile(now = Sys.now)
          verdict = @observation&.look(now) or return false
          watched = watch?
          if verdict != :passed then fail(verdict)
          elsif watched then @generations.prove_for_good
          elsif @generations.lost_threads.pending? then wait_for_threads(now)
          else pass
          end

          watched && !watch?
        end

        # A generation begins: from here on the silence of clients is measured.
        def begin
          @silence = Silence.new(@roster, @heard_at, Sys.now)
        end

        # Its first worker has come up.
        # @return [Boolean] false: it need not prove anything
        def try(generation, canary)
          terms = terms_for(generation) || (THREADS_ONLY if @generations.lost_threads.pending?)
          return false unless terms && generation.successor?

          @records.begun_cold(generation.number) unless generation.source
          return skip(generation) if generation.untried

          if trial?
            @observation.begin_anew
            return true
          end

          @generation = generation
          @observation = Trial.new(generation.number, terms, @roster, @records, heard_at: @heard_at, silence: @silence)
          Events.emit("canary.serving", **canary.identity, **terms.facts)
          true
        end

        # The canary has sent itself requests.
        # @param text [String] see Trial#tried; why it failed
        def tried(canary, text, failed:)
          return unless tries?(canary)

          failed ? fail(text) : @observation.tried(text)
        end

        # @return [Float, nil] seconds for which the trial or the watch can still go on; nil: there is neither
        def remaining
          seconds = @observation&.remaining
          return seconds unless trial?

          [(seconds if @options.canary), @generations.lost_threads.remaining(progress[:seconds])].compact.max
        end

        def trial? = @observation.is_a?(Trial)
        def watch? = @observation.is_a?(RolloutWatch)

        # @return [Hash] for events and `pando status`; empty: there is neither
        def progress = @observation&.progress || {}

        def due = @observation&.due

        # The generation serves in all slots.
        # @param last [Generation, nil] the one that it has replaced
        # @return [Boolean] whether the old one's mold is kept
        def established(generation, last)
          unless generation.successor?
            @records.merge_into(generation.number)
            return false
          end

          before = @records.before(generation.number)
          @records.forget_before(generation.number)
          return false unless @options.canary && (last&.forks? || last&.released?)

          @kept = last
          @generation = generation
          @observation = RolloutWatch.new(generation.number, terms_for(generation), @roster, @records,
                                          before: before, size: @options.workers, heard_at: @heard_at)
          true
        end

        # Ends the watch, and hands over the kept generation.
        def release
          @observation = nil if watch?
          @kept.tap { @kept = nil }
        end

        def discarded(generation)
          @observation = nil
          @records.forget(generation.number)
        end

        # Called for each worker that had come up, while its row is still its own.
        # @param fault [Symbol] :none: it was told to leave; :elsewhere: it was killed from outside; :own
        def worker_gone(worker, reason, fault)
          @records.add_dead(worker, fault == :own)
          return if fault == :none || !tries?(worker)

          complaint = fault == :own ? reason : @observation.lose(reason)
          fail(complaint) if complaint
        end

        # A worker of the current generation did not come up.
        def worker_failed(reason)
          complaint = @observation.fail(reason) if watch?
          fail(complaint) if complaint
        end

        # Code that serves, and was forked from a warm worker before, has less to prove.
        # @return [Criteria, nil] nil: there is nothing to prove
        def terms_for(generation)
          terms = @options.canary
          return terms unless generation.purpose == :refork

          reforks = @generations.reforks
          terms&.for(reforks.any? && reforks.failures.zero? ? :again : :refork)
        end

        private

        def tries?(worker) = trial? && worker.generation == @generation.number

        # The canary does well, but may still lack a thread.
        def wait_for_threads(now)
          reason = @generations.lost_threads.give_up_waiting(@observation.progress(now)[:seconds])
          @generations.refuse(reason) if reason
        end

        # The other workers may be replaced.
        def pass
          @generation.unproven = @observation.unproven(@options.jobs ? "job" : "request")
          name = @generation.unproven ? "canary.unproven" : "canary.passed"
          more = { reason: @generation.unproven, replayed: @observation.replayed }.compact
          Events.emit(name, generation: @generation.number, **progress, **more)
          @observation = nil
          @generation.enter(:rolling)
        end

        # @return [false] it need not prove anything
        def skip(generation)
          generation.unproven = generation.untried
          Events.emit("canary.skipped", generation: generation.number, reason: generation.untried)
          false
        end

        def fail(reason)
          what = trial? ? "canary" : "watch"
          Events.emit("#{what}.failed", generation: @generation.number, **progress, reason: reason)
          return @generations.roll_back(reason) if watch?

          @generations.withdraw(@generation, "its canary did not prove itself: #{reason}")
        end
      end
    end
  end
end
