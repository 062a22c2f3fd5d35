# frozen_string_literal: true

require "forwardable"
require "pando/cluster/brief"
require "pando/cluster/throttling/restart_throttles"
require "pando/cluster/retired_generations"
require "pando/cluster/generation"
require "pando/cluster/generations/serialization"
require "pando/cluster/generations/changed_state"
require "pando/cluster/generations/cold_boots"
require "pando/cluster/generations/faults"
require "pando/cluster/options"
require "pando/cluster/generations/lost_threads"
require "pando/cluster/generations/occupation"
require "pando/cluster/generations/promotion"
require "pando/cluster/canary/evaluation"
require "pando/cluster/generations/reforks"
require "pando/cluster/generations/verdicts"

module Pando
  module Cluster
    # Which generation serves, which one is on its way, and what to do when a
    # mold dies. Owned by the monitor.
    #
    # @api private
    class Generations
      include Brief
      extend Forwardable
      include Generations::Serialization
      include Generations::Faults
      include Generations::Occupation
      include Generations::Verdicts

      # What a mold that is no longer wanted is told, and its end called.
      ENDS = %w[retired discarded refused released].freeze

      # Two Generation, a LostThreads, a ChangedState and a ColdBoots.
      attr_reader :current, :upcoming, :lost_threads, :changed_state, :cold_boots

      # reforks: how many since the last mold that booted from cold; passer: see Reforks. on_trial?: the upcoming
      # generation's first worker serves, and what it does is looked at; progress: how far that is. watching?: the
      # current generation serves, and its predecessor's mold is kept meanwhile. passed?: of a generation, by its
      # number; discarded?: of a child, whether it was forked for one that came to nothing.
      def_delegator :@reforks, :count, :reforks
      def_delegator :@reforks, :expected?, :refork_expected?
      def_delegators :@reforks, :suspension, :training, :explain, :policy=, :heir, :passer
      def_delegators :@evaluation, :progress, :worker_gone, :remaining
      def_delegator :@evaluation, :tried, :canary_tried
      def_delegator :@evaluation, :trial?, :on_trial?
      def_delegator :@evaluation, :watch?, :watching?
      def_delegators :@retired, :passed?, :discarded?
      # The order to fork the upcoming generation's mold was not carried out in time; see Promotion.
      def_delegator :@promotion, :overdue, :promotion_overdue

      # @param policy [#threshold, #manual?, #choose, #justify, #trains?] see Pando::Refork::Policy
      # @param give_up [#call] called with a reason and a backtrace when a try has failed and nobody serves; returns
      #   false: go on trying
      # @param options [#canary, #refork_failures, #workers] how a generation proves itself
      # @param throttles [Throttling::RestartThrottles] that of the mold: one that dies again and again is replaced later each time
      # @param heard_at [#call] see Canary::Stopwatch
      # @param origin [#call] given a purpose, the mold of another pool that is to be forked in the place of a cold
      #   boot; nil: there is none
      # @param measuring [Hash] gauge: and conditions: of Reforks; those and clock: of ColdBoots
      def initialize(roster, spawner, policy, give_up, options = Options.new, throttles: Throttling::RestartThrottles.new,
                     heard_at: :itself.to_proc, origin: ->(_purpose) {}, **measuring)
        @throttles = throttles
        @roster = roster
        @spawner = spawner
        @give_up = give_up
        @origin = origin
        @backoff = Throttling::Backoff.new
        @newest = -1
        @retired = RetiredGenerations.new
        @lost_threads = LostThreads.new(roster, self, -> { measuring[:conditions]&.obstacle })
        @changed_state = ChangedState.new(roster, self)
        @evaluation = Canary::Evaluation.new(roster, options, self, heard_at)
        @reforks = Reforks.new(roster, policy, self, @backoff, options, **measuring.except(:clock))
        @cold_boots = ColdBoots.new(roster, self, @reforks, **measuring)
        @promotion = Promotion.new(self, @reforks, options)
        @unwilling = []
        @proven = false
      end

      # @return [Boolean] one serves, none is on its way or watched
      def settled? = !current.nil? && upcoming.nil? && !watching?

      # @return [Boolean] whether a rollout would replace it
      def outdated?(worker) = @retired.above?(worker)

      # Called at each turn of the monitor's loop. Nothing is begun in the turn in which a watch ends: if it was over a
      # reload, that one's settings say what is to be done, and the next turn brings them.
      def reconcile
        return if @evaluation.reconcile

        @promotion.reconcile
        @lost_threads.reconcile
        @changed_state.reconcile
        lose_current("it is gone") if current&.mold&.gone?
        @reforks.training.reconcile
        @cold_boots.reconcile
        return if upcoming || !@backoff.over?
        return (heal if @throttles.over?(:mold)) unless current

        @reforks.wanted&.then { |reason| refork(reason, asked: false) }
      end

      # When reconcile has something to do again, nil: at the next event.
      def due
        [@backoff.due, @evaluation.due, @changed_state.due, @cold_boots.due,
         (@reforks.due if current && upcoming.nil?)].compact.min
      end

      # @return [Generation, nil] the last one that need not prove anything
      def proved = @evaluation.kept || current

      # @return [Boolean] a generation has served: the failure of another one does not end the server
      def proven? = @proven

      def begin_boot = begin_generation(:boot)

      # See MoldReleaser.
      def release_mold(reason) = current.release_mold(reason)
      def released? = !!current&.released?

      # @return [Generation, nil] nil: not now
      def recall_mold = (heal if upcoming.nil? && @backoff.over?)

      # @return [Boolean] whether the mold that would be fallen back to is there, or cannot be had
      def rooted? = upcoming.nil? && (!released? || !@backoff.over? || heir.nil?)

      # @param force [Boolean] even if reforking is suspended, or the next try is to wait
      # @param asked [Boolean] by somebody who waits for the answer
      # @return [Boolean] false when it cannot be done now; an event says why
      def refork(reason, force: false, asked: true)
        worker = @reforks.source(reason, force, asked: asked) or return false
        @wanted = reason
        !begin_generation(:refork, worker).nil?
      end

      # A clean image of what is to be served from now on.
      # @param command [Array<String>] what becomes its mold
      # @param listeners [Array<Listener>] that it accepts from
      # @return [Generation]
      # @raise [Error] the kernel has no process for it
      def reload(command, listeners)
        begin_generation(:reload, nil, command, listeners) || raise(Error, unstarted)
      end

      # A clean image of what serves, in the place of what has grown. Begun only while all is settled.
      # @return [Generation, nil] nil: the kernel has no process for it
      def reboot = begin_generation(:reboot)

      def mold_ready(child)
        return child.kill("its generation was given up") unless upcoming&.mold.equal?(child)

        @cold_boots.born(upcoming)
        upcoming.enter(:ready)
        upcoming.go_on unless upcoming.held?
      end

      # @param cause [Symbol] see worker_failed
      def mold_gone(child, reason, cause: :own)
        if upcoming&.mold.equal?(child) then fail_mold(child, reason, cause)
        elsif current&.mold.equal?(child) then lose_current(reason)
        elsif @evaluation.kept&.mold.equal?(child) then let_go(reason)
        end
      end

      def worker_ready(child)
        serving_generation(child)&.backoff&.succeed
        return unless upcoming&.number == child.generation && upcoming.canary?

        roll unless @evaluation.try(upcoming, child)
      end

      # The rollout is through, or there was none to do.
      def establish
        last = current
        @current = generation = upcoming
        @upcoming = nil
        @lost_threads.established(generation)
        @changed_state.established(generation)
        @proven = true
        @unwilling = []
        kept = @evaluation.established(generation, last)
        kept ? last.enter(:kept, **@evaluation.terms_for(generation).facts) : retire(last)
        @reforks.established(generation)
        @cold_boots.established(generation)
        generation.become_current
        @reforks.proved(generation) unless kept
      end

      # New workers are to come from the upcoming generation from now on.
      def raise_floor
        @retired.raise_to(upcoming.number) unless upcoming.heal?
      end

      private

      # @return [Generation, nil] nil: the kernel has no process for its mold, and nothing has changed
      def begin_generation(purpose, source = nil, *release)
        mold = source ? @spawner.mold_from(source, @newest + 1) : cold_mold(purpose, release)
        return put_off(purpose, source) if mold.nil? && proven?

        let_go("the next generation is on its way") if @evaluation.kept
        @newest += 1
        tell_source(source) if purpose == :refork
        @evaluation.begin
        @upcoming = Generation.new(@newest, purpose, source)
        upcoming.mold = mold
        @promotion.begin(source) if source
        return upcoming.tap { |one| discard(one, unstarted, nil) } unless mold

        Events.emit("mold.booting", **mold.identity, reason: purpose) unless source
        upcoming
      end

      def tell_source(worker)
        Events.emit("refork.started", generation: @newest, source: worker.pid, slot: worker.slot,
                                      requests: worker.requests, reason: @wanted, choice: @reforks.justify(worker))
      end

      def unstarted = "the process could not be started: #{@spawner.refusal}"

      def cold_mold(purpose, release)
        origin = @origin.call(purpose)
        origin ? @spawner.mold_beside(origin, @newest + 1) : @spawner.cold_mold(@newest + 1, *release)
      end

      # The old mold is dead: its best child takes its place, else a clean image. A worker for whom the kernel has no
      # process is not asked again before that has been tried: it may be this worker's own limit.
      def heal = begin_generation(:heal, @reforks.heir(@unwilling))

      def serving_generation(child) = [upcoming, current].compact.find { |one| one.number == child.generation }

      def lose_current(reason)
        @throttles.fail(:mold, reason)
        let_go("its successor's mold is lost")
        current.tap { @current = nil }.enter(:retired, reason: reason)
      end

      def retire(generation, reason = nil)
        return unless generation

        generation.enter(:retired, reason: reason)
        generation.end_mold("retired")
      end

      # The mold that was kept is no longer needed.
      def let_go(reason) = retire(@evaluation.release, reason)
    end
  end
end
