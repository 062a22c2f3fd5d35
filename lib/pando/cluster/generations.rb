# frozen_string_literal: true

require "pando/cluster/canary/evaluation"
require "pando/cluster/generation"
require "pando/cluster/generations/changed_state"
require "pando/cluster/generations/cold_boots"
require "pando/cluster/generations/lost_threads"
require "pando/cluster/generations/promotion"
require "pando/cluster/generations/reforks"
require "pando/cluster/options"
require "pando/cluster/restart_throttles"
require "pando/cluster/retired_generations"

module Pando
  module Cluster
    # Knows which generation serves and which one is on its way, moves them through their states, replaces a dead mold.
    # Owned by a Pool, in the monitor.
    class Generations
      include Brief
      extend Forwardable
      extend Serializable

      # Why a mold ends. The event of its end is named after it (`mold.retired`).
      ENDS = %w[retired discarded refused released].freeze
      # Workers that fail to start in a row, after which a mold without ready workers is given up. At the first boot the
      # kernel may refuse as many processes.
      LAST_TRY = 5
      # Children whose self-check did not come back, after which their mold is given up.
      UNFIT = 2

      serialize newest: :integer, reforks: Reforks, cold_boots: ColdBoots, proven: :flag,
                backoff: Backoff, retired: RetiredGenerations

      attr_reader :current, :upcoming, :reforks, :promotion, :lost_threads, :changed_state, :cold_boots

      # on_trial?: whether the upcoming generation has a canary that is being evaluated; watching?: whether the current
      # generation is watched, and its predecessor's mold kept meanwhile.
      def_delegators :@evaluation, :progress, :worker_gone, :remaining
      def_delegator :@evaluation, :tried, :canary_tried
      def_delegator :@evaluation, :trial?, :on_trial?
      def_delegator :@evaluation, :watch?, :watching?
      def_delegators :@retired, :passed?, :discarded?, :outdated?
      def_delegators :@reforks, :refork

      # @param give_up [#call] called with a reason and a backtrace when an attempt has failed and no worker serves;
      #   returns false to go on trying
      # @param origin [#call] given a purpose, returns the mold of another pool to fork instead of a cold boot; nil:
      #   none
      # @param measuring [Hash] gauge: and conditions: of Reforks; those and clock: of ColdBoots
      def initialize(roster, spawner, policy, give_up, options = Options.new, throttles: RestartThrottles.new,
                     heard_at: :itself.to_proc, origin: ->(_purpose) {}, **measuring)
        @throttles = throttles
        @roster = roster
        @spawner = spawner
        @give_up = give_up
        @origin = origin
        @backoff = Backoff.new
        @newest = -1
        @retired = RetiredGenerations.new
        @lost_threads = LostThreads.new(roster, self, -> { measuring[:conditions]&.obstacle })
        @changed_state = ChangedState.new(roster)
        @evaluation = Canary::Evaluation.new(roster, options, self, heard_at)
        @reforks = Reforks.new(roster, policy, self, @backoff, options, **measuring.except(:clock))
        @cold_boots = ColdBoots.new(roster, self, @reforks, **measuring)
        @promotion = Promotion.new(self, @reforks, spawner, options)
        @unwilling = []
        @proven = false
      end

      def settled? = !current.nil? && upcoming.nil? && !watching?

      # Nothing begins in the turn in which a watch ends: if it was over a reload, the next turn brings its settings.
      def reconcile
        return if @evaluation.reconcile

        @promotion.reconcile
        @lost_threads.reconcile
        @changed_state.reconcile(upcoming.nil?)
        lose_current("it is gone") if current&.mold&.gone?
        @cold_boots.reconcile
        return if upcoming || !@backoff.over?

        current ? @reforks.reconcile : (heal if @throttles.over?(:mold))
      end

      def due
        [@backoff.due, @evaluation.due, @changed_state.due, @cold_boots.due,
         (@reforks.due if current && upcoming.nil?)].compact.min
      end

      # @return [Generation, nil] the last one that has nothing left to prove
      def proved = @evaluation.kept || current

      # Whether a generation has served: then a failure of the next does not end the server.
      def proven? = @proven

      # @return [Array(String, Float), nil] what is going on, in words, and the most seconds that it can still take
      #   (nil: unknown); nil: nothing
      def occupation
        return (["generation #{current.number} is watched", remaining] if watching?) unless upcoming

        question = lost_threads.question if on_trial?
        ["#{upcoming.occupation}#{": its first worker is to show #{question}" if question}",
         remaining || upcoming.mold&.deadline&.-(Sys.now)]
      end

      def release_mold(reason) = current.release_mold(reason)
      def released? = !!current&.released?

      # @param needed [Boolean] whether a process is needed: then a refork does not keep it waiting for long
      def recall_mold(needed: true)
        given_way = needed && @promotion.give_way
        heal if upcoming.nil? && (given_way || @backoff.over?)
      end

      # @return [Child, nil] the worker that would take the place of the mold. One for which the kernel had no process
      #   is not asked again before a cold boot was tried: the limit may be the worker's own.
      def healing_source = @reforks.healing_source(@unwilling)

      # Whether the mold to fall back to is there, or cannot be had.
      def fallback_ready? = upcoming.nil? && (!released? || !@backoff.over? || healing_source.nil?)

      def begin_boot = begin_generation(:boot)

      # @return [Generation, nil] nil: the kernel has no process for its mold, and nothing has changed
      def begin_generation(purpose, source = nil, *release)
        mold = source ? @promotion.order(source, @newest + 1, purpose) : cold_mold(purpose, release)
        return put_off(purpose, source) if mold.nil? && proven?

        release_kept("the next generation is on its way") if @evaluation.kept
        @newest += 1
        @reforks.begun(@newest, source) if purpose == :refork
        @evaluation.begin
        @upcoming = Generation.new(@newest, purpose, source)
        upcoming.mold = mold
        @promotion.begin(source) if source
        return upcoming.tap { |one| discard(one, unstarted) } unless mold

        Events.emit("mold.booting", **mold.identity, reason: purpose) unless source
        upcoming
      end

      # Boots the next release.
      # @param command [Array<String>] what becomes its mold @param listeners [Array<Listener>] that it accepts from
      # @raise [Error] the kernel has no process for it
      def reload(command, listeners)
        @release = [command, listeners]
        begin_generation(:reload, nil, *@release) || raise(Error, unstarted)
      end

      # The release of the last reload is the pool's own now.
      def adopt_release = @release = nil

      # Boots the current release anew, to replace what has grown. Called only while all is settled.
      def reboot = begin_generation(:reboot)

      def mold_adopted(child) = (upcoming.forked! if upcoming&.mold.equal?(child))

      def mold_ready(child)
        return child.kill("its generation was given up") unless upcoming&.mold.equal?(child)

        @cold_boots.born(upcoming)
        upcoming.enter(:ready)
        upcoming.go_on unless upcoming.held?
      end

      def mold_gone(child, reason, cause: :own)
        if upcoming&.mold.equal?(child) then fail_mold(child, reason, cause)
        elsif current&.mold.equal?(child) then lose_current(reason)
        elsif @evaluation.kept&.mold.equal?(child) then release_kept(reason)
        end
      end

      # The kernel has no process for the upcoming mold.
      def mold_refused = fail_mold(nil, unstarted, :refused)

      # If it is a canary, the rollout goes on at once or when it has proved itself.
      def worker_ready(child)
        generation_of(child)&.backoff&.succeed
        return unless upcoming&.number == child.generation && upcoming.canary?

        upcoming.enter(:rolling) unless @evaluation.try(upcoming, child)
      end

      # A worker ended by itself: before it was ready, or soon after. The next one waits, or the generation is given up.
      # @param cause [Symbol] :refused: the kernel had no process for it; :passing: it lacked what it needs to begin,
      #   see PassingFault; :job: a job may have ended it; :own
      def worker_failed(child, reason, cause: :own)
        generation = generation_of(child) or return
        return refused(generation, reason) if excused?(generation, cause)

        generation.backoff.fail(reason)
        # its backtrace was told by an event of its own
        return discard(generation, reason) if ends_generation?(generation, cause)

        @evaluation.worker_failed(reason) unless cause == :job || generation.equal?(upcoming)
      end

      # A worker could not be had, and the generation is not to blame. If one has served, the attempts never end.
      def refused(generation, reason)
        generation.backoff.fail(reason, refused: true)
        return give_up_unless_serving(reason) if proven?

        discard(generation, reason) if generation.backoff.refusals >= LAST_TRY
      end

      # A worker's self-check did not come back. A fork may catch a lock at a bad moment, but twice is the mold's fault.
      def child_unfit(child, reason)
        generation = generation_of(child) or return
        generation.backoff.fail(reason)
        return if generation.count_unfit < UNFIT
        return discard(generation, reason, child.detail) if generation.equal?(upcoming)
        return roll_back(reason) if watching?

        generation.end_mold("discarded")
        lose_current(reason)
        @backoff.fail
      end

      # A worker leaves. If it has served nothing, the next one waits, lest Pando fork for ever.
      def worker_leaves(child, reason) = (generation_of(child)&.backoff&.fail(reason) if child.row.job.zero?)

      # The upcoming generation lacks a thread, or gets no process. That is not a failure, and an event has told of it.
      def refuse(reason) = abandon(upcoming, :refused, reason)

      # New workers come from the upcoming generation from now on.
      def raise_floor = (@retired.raise_to(upcoming.number) unless upcoming.heal?)

      # The rollout is finished, or none was needed.
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

      # All workers are replaced from the last good mold.
      def roll_back(reason) = withdraw(current, "its workers do not prove themselves: #{reason}")

      # The watch has ended well: the kept mold is no longer needed.
      def prove_for_good
        @reforks.proved(current)
        release_kept("generation #{current.number} has proved itself")
      end

      # Ends a watch early, because something else must not wait for it.
      def end_watch(reason) = (release_kept(reason) if watching?)

      # The generation is not to serve any more. One that has nothing left to prove goes on.
      def withdraw(generation, reason)
        return discard(generation, reason) if generation.equal?(upcoming)
        return unless generation.equal?(current) && watching?

        @current = @evaluation.release
        [@lost_threads, @changed_state, @cold_boots].each(&:rolled_back)
        discard(generation, reason)
        current.enter(:current)
      end

      # For an upgrade of the monitor. No generation is on its way or watched then.
      def to_state(state)
        state.add("generations", **serialized_fields)
        lost_threads.to_state(state)
        current&.to_state(state)
      end

      def from_state(state)
        take_up(state.one("generations"))
        lost_threads.from_state(state)
        @current = state.any("generation")&.then { |record| Generation.taken_up(record, @roster) }
      end

      private

      def unstarted = "the process could not be started: #{@spawner.refusal}"

      # Other pools may still try the release that this one serves. If its mold is lost meanwhile, the next one has the
      # same release, and not the one before.
      def cold_mold(purpose, release)
        release = @release.to_a if purpose == :heal
        origin = @origin.call(purpose) unless purpose == :heal && @release
        origin ? @spawner.mold_beside(origin, @newest + 1) : @spawner.cold_mold(@newest + 1, *release)
      end

      # The mold is dead: the best of its workers takes its place, else a cold boot.
      def heal = begin_generation(:heal, healing_source)

      def generation_of(child) = [upcoming, current].compact.find { |one| one.number == child.generation }

      def lose_current(reason)
        @throttles.fail(:mold, reason)
        release_kept("its successor's mold is lost")
        current.tap { @current = nil }.enter(:retired, reason: reason)
      end

      def retire(generation, reason = nil)
        return unless generation

        generation.enter(:retired, reason: reason)
        generation.end_mold("retired")
      end

      def release_kept(reason) = retire(@evaluation.release, reason)

      def ends_generation?(generation, cause)
        failed = generation.backoff.failures >= LAST_TRY
        generation.equal?(upcoming) ? failed || cause != :job : failed && @roster.ready_workers.empty?
      end

      # A passing fault excuses only a release that has served.
      def excused?(generation, cause)
        return cause == :refused unless cause == :passing

        proven? && (generation.established? || generation.purpose != :reload)
      end

      def fail_mold(child, reason, cause)
        excused = proven? && upcoming.booting? && excused?(upcoming, cause)
        return discard(upcoming, reason, child&.detail) unless excused

        put_off(upcoming.purpose, upcoming.source, reason, cheap: cause == :refused)
        refuse(reason)
      end

      # The kernel has no process for a mold, which is not a failure. It is tried again; a user who asked gets an event.
      # @param cheap [Boolean] the attempt loaded nothing: beside workers that serve it may be repeated often
      def put_off(purpose, source, reason = unstarted, cheap: true)
        return @reforks.put_off(reason, source) if purpose == :refork
        return if %i[reload reboot].include?(purpose)

        source ? @unwilling += [source] : @unwilling = []
        @backoff.fail(refused: cheap || @roster.ready_workers.empty?)
        give_up_unless_serving(reason)
        nil
      end

      # An attempt has failed. If no worker serves, that may end the server.
      def give_up_unless_serving(reason, detail = nil) = @roster.ready_workers.empty? && @give_up.call(reason, detail)

      def discard(generation, reason, detail = nil)
        blame_source(generation, reason)
        abandon(generation, :discarded, reason)
        delay = @backoff.fail
        return if !current&.forks? && give_up_unless_serving(reason, detail)

        Events.emit("refork.postponed", seconds: delay.round(2), reason: reason) unless generation.purpose == :reload
      end

      # One that was busy all the time is not to blame.
      def blame_source(generation, reason)
        return if generation.source&.declined_while_busy?

        generation.source&.excluded_as_source = true
        @reforks.failed(generation, reason)
      end

      def abandon(generation, state, reason)
        @lost_threads.forget_trial if generation.equal?(upcoming)
        @release = nil if generation.purpose == :reload
        @upcoming = nil if generation.equal?(upcoming)
        @current = nil if generation.equal?(current)
        @retired.discard(generation.number)
        @evaluation.discarded(generation)
        generation.enter(state, reason: reason)
        generation.end_mold(state.name)
        @roster.call_off(generation.number, "its generation was #{state}") # it would take the place of others
      end
    end
  end
end
