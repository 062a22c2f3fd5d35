# frozen_string_literal: true

require "pando/cluster/proof/records"
require "pando/cluster/proof/suspension"
require "pando/cluster/proof/terms"
require "pando/cluster/proof/trial"
require "pando/cluster/proof/watch"
require "pando/events"

module Pando
  module Cluster
    # Whether a new generation does as well as the one before: the trial of its first worker, and after the rollout the
    # watch over all of them, during which the old mold is kept. Says so; what follows is up to Generations.
    # docs/canary.md has the rules.
    #
    # Owned by Generations, in the monitor.
    module Proof
      # @api private
      class Proving
        # The last good generation, whose mold is kept during the watch; nil: there is no watch.
        # @return [Generation, nil]
        attr_reader :kept

        # @param options [#canary, #workers] of which a reload may change the terms; canary nil: no proof
        # @param discarded [#call] see Records
        def initialize(roster, options, discarded)
          @roster = roster
          @options = options
          @records = Records.new(roster, discarded)
        end

        # Its first worker has come up.
        # @param generation [Generation]
        # @return [Boolean] false: it need not prove anything
        def try(generation, canary)
          return false unless terms && generation.successor?
          return true if @trial # another canary: its predecessor is gone

          @trial = Trial.new(generation.number, terms, @roster, @records)
          Events.emit("canary.serving", **canary.identity, **terms.to_h)
          true
        end

        def trial? = !@trial.nil?
        def watch? = !@watch.nil?

        # @return [Symbol, String, nil] :passed, or what is wrong with who is on trial or watched; nil: nothing new
        def look(now = Sys.now) = (@trial || @watch)&.look(now)

        # @return [Hash] for events and `pando status`; empty: nobody is on trial
        def progress = @trial ? @trial.progress : {}

        # The trial, or the watch, is over.
        def conclude
          @trial = @watch = nil
        end

        # It serves in all slots.
        # @param generation [Generation] @param last [Generation, nil] the one it has replaced
        # @return [Boolean] whether the old one's mold is kept
        def established(generation, last)
          return @records.fold_into(generation.number) && false unless generation.successor?

          before = @records.before(generation.number)
          @records.forget_before(generation.number)
          return false unless terms && last&.forks?

          @kept = last
          @watch = Watch.new(generation.number, terms, @roster, @records, before, @options.workers)
          true
        end

        # The kept one is needed, or no longer.
        # @return [Generation, nil]
        def release
          @watch = nil
          @kept.tap { @kept = nil }
        end

        def discarded(generation)
          conclude
          @records.forget(generation.number)
        end

        # A worker is gone that had come up; its row is still its own.
        # @param crashed [Boolean] as nobody wanted, and nobody from outside has done it
        def bury(worker, crashed) = @records.bury(worker, crashed)

        # The canary was killed from outside. @return [String, nil] what is wrong
        def lose(reason) = @trial.lose(reason)

        # A worker did not come up. @return [String, nil] what is wrong
        def worker_failed(reason) = @watch&.fail(reason)

        # @return [Float, nil]
        def due = (@trial || @watch)&.due

        private

        def terms = @options.canary
      end
    end
  end
end
