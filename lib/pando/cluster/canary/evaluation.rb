# frozen_string_literal: true

require "pando/cluster/brief"
require "pando/cluster/canary/records"
require "pando/cluster/canary/criteria"
require "pando/cluster/canary/trial"
require "pando/cluster/canary/observation"
require "pando/events"

module Pando
  module Cluster
    module Canary
      # Whether a new generation does as well as the one before: the trial of its first worker, and after the rollout
      # the watch over all of them, during which the old mold is kept. What follows is up to Generations.
      # docs/canary.md has the rules.
      #
      # Owned by Generations, in the monitor.
      #
      # @api private
      class Evaluation
        include Brief

        # Without a proof of the user's: as long as it takes to see whether threads come back.
        THREADS_ONLY = Criteria.new(requests: 0, seconds: 0.0, longest: 30.0).freeze
        private_constant :THREADS_ONLY

        # The last good generation, whose mold is kept during the watch; nil: there is no watch.
        # @return [Generation, nil]
        attr_reader :kept

        # @param options [#canary, #workers] of which a reload may change the terms; canary nil: no proof
        # @param generations [#roll, #give_up, #refuse, #roll_back, #prove_for_good, #discarded?, #lost_threads,
        #   #reforks]
        # @param heard_at [#call] see Stopwatch
        def initialize(roster, options, generations, heard_at)
          @heard_at = heard_at
          @roster = roster
          @options = options
          @generations = generations
          @records = Records.new(roster, generations.method(:discarded?))
        end

        # Called at each turn of the monitor's loop.
        # @return [Boolean] whether a watch has ended
        def reconcile(now = Sys.now)
          watched = watch?
          verdict = (@trial || @watch)&.look(now) or return false
          return wait(now) && false if verdict == :passed && trial? && @generations.lost_threads.pending?

          verdict == :passed ? pass : fail(verdict)
          watched && !watch?
        end

        # A generation is begun: whether clients are silent is seen from here on.
        def begin
          @silence = Silence.new(@roster, @heard_at, Sys.now)
        end

        # Its first worker has come up.
        # @param generation [Generation]
        # @return [Boolean] false: it need not prove anything
        def try(generation, canary)
          terms = terms_for(generation) || (THREADS_ONLY if @generations.lost_threads.pending?)
          return false unless terms && generation.successor?
          return skip(generation) if generation.untried
          return @trial.begin_anew || true if @trial

          @generation = generation
          @number = generation.number
          @records.begun_cold(@number) unless generation.source
          @trial = Trial.new(@number, terms, @roster, @records, heard_at: @heard_at, silence: @silence)
          Events.emit("canary.serving", **canary.identity, **terms.facts)
          true
        end

        # The canary has done what it may do of its own accord.
        # @param canary [Child] @param text [String] see Trial#tried; why it failed
        def tried(canary, text, failed:)
          return unless trial? && canary.generation == @number

          failed ? fail(text) : @trial.tried(text)
        end

        # @return [Float, nil] seconds for which the trial or the watch can still go on; nil: there is neither
        def remaining
          seconds = (@trial || @watch)&.remaining
          return seconds unless trial?

          [(seconds if terms), @generations.lost_threads.remaining(progress[:seconds])].compact.max
        end

        def trial? = !@trial.nil?
        def watch? = !@watch.nil?

        # @return [Hash] for events and `pando status`; empty: nobody is on trial, nor watched
        def progress = (@trial || @watch)&.progress || {}

        # It serves in all slots.
        # @param generation [Generation] @param last [Generation, nil] the one it has replaced
        # @return [Boolean] whether the old one's mold is kept
        def established(generation, last)
          return @records.fold_into(generation.number) && false unless generation.successor?

          before = @records.before(generation.number)
          @records.forget_before(generation.number)
          return false unless terms && (last&.forks? || last&.released?)

          @kept = last
          @watch = Observation.new(generation.number, terms_for(generation), @roster, @records, before, @options.workers,
                             heard_at: @heard_at)
          true
        end

        # The kept one is needed, or no longer.
        # @return [Generation, nil]
        def release
          @watch = nil
          @kept.tap { @kept = nil }
        end

        def discarded(generation)
          @trial = @watch = nil
          @records.forget(generation.number)
        end

        # Called for each that had come up, while its row is still its own.
        # @param fault [Symbol] :none: it was to go; :elsewhere: somebody killed it; :own
        def worker_gone(worker, reason, fault)
          @records.bury(worker, fault == :own)
          return if fault == :none || @number != worker.generation || !trial?

          complaint = fault == :own ? reason : @trial.lose(reason)
          fail(complaint) if complaint
        end

        # A worker of the current generation did not come up.
        def worker_failed(reason)
          complaint = @watch&.fail(reason)
          fail(complaint) if complaint
        end

        # @return [Float, nil]
        def due = (@trial || @watch)&.due

        # @return [Criteria, nil] nil: nothing is to be proved
        def terms = @options.canary

        # Code that serves, and has been forked from a warm worker before, has less to prove.
        # @param generation [Generation]
        # @return [Criteria, nil] nil: nothing is to be proved
        def terms_for(generation)
          return terms unless generation.purpose == :refork

          terms&.for(@generations.reforks.positive? ? :again : :refork)
        end

        private

        # It does well, but may still lack a thread.
        def wait(now)
          reason = @generations.lost_threads.give_up_waiting(@trial.progress(now)[:seconds])
          @generations.refuse(reason) if reason
          true
        end

        def pass
          return @generations.prove_for_good unless trial?

          tell_passed
          @trial = nil
          @generations.roll
        end

        def tell_passed
          @generation.unproven = @trial.unproven(@options.jobs ? "job" : "request")
          name = @generation.unproven ? "canary.unproven" : "canary.passed"
          Events.emit(name, generation: @number, **progress,
                            **{ reason: @generation.unproven, replayed: @trial.replayed }.compact)
        end

        # @return [false] it need not prove anything
        def skip(generation)
          generation.unproven = generation.untried
          Events.emit("canary.skipped", generation: generation.number, reason: generation.untried)
          false
        end

        def fail(reason)
          what = trial? ? "canary" : "watch"
          Events.emit("#{what}.failed", generation: trial? ? @number : @generations.current.number, **progress,
                                        reason: reason)
          trial? ? @generations.give_up(reason) : @generations.roll_back(reason)
        end
      end
    end
  end
end
