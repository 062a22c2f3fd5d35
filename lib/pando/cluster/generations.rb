# frozen_string_literal: true

require "pando/cluster/floor"
require "pando/cluster/generation"
require "pando/cluster/options"
require "pando/cluster/proof"
require "pando/cluster/sources"

module Pando
  module Cluster
    # Which generation serves, which one is on its way, and what to do when a
    # mold dies. Owned by the monitor.
    #
    # @api private
    class Generations
      # Failed boots in a row after which a cluster without workers gives up.
      LAST_TRY = 5

      # Children whose self-check did not come back, after which their mold is given up.
      UNFIT = 2

      # What a mold that is no longer wanted is told, and its end called.
      ENDS = %w[retired discarded].freeze

      attr_reader :current, :upcoming, :reforks, :suspension

      # @param policy [#threshold, #manual?, #choose] see Pando::Refork::Policy
      # @param give_up [#call] called with a reason and a backtrace when nothing can be served
      # @param options [#canary, #refork_failures, #workers] how a generation proves itself
      def initialize(roster, spawner, policy, give_up, options = Options.new)
        @roster = roster
        @spawner = spawner
        @policy = policy
        @give_up = give_up
        @sources = Sources.new(roster, policy, method(:outdated?))
        @backoff = Backoff.new
        @newest = -1
        @floor = Floor.new
        @proving = Proof::Proving.new(roster, options, method(:discarded?))
        @suspension = Proof::Suspension.new(-> { options.refork_failures })
        @reforks = 0
        @proven = false
      end

      # @return [Boolean] whether a rollout would replace it
      def outdated?(worker) = @floor.above?(worker)

      # @return [Boolean] whether it was forked for a generation that came to nothing
      def discarded?(child) = @floor.discarded?(child)

      # Called at each turn of the monitor's loop.
      def reconcile
        verdict = @proving.look
        conclude(verdict) if verdict
        return if upcoming || !@backoff.over?

        if current.nil? then heal
        else refork_when_due
        end
      end

      # When reconcile has something to do again, nil: at the next event.
      def due = [@backoff.due, @proving.due].compact.min

      # The upcoming generation's first worker serves, and what it does is looked at.
      def proving? = @proving.trial?

      # @return [Generation, nil] the last one that need not prove anything
      def proved = @proving.kept || current

      # It serves, and its predecessor's mold is kept meanwhile.
      def watched?(generation) = @proving.watch? && current.equal?(generation)

      # How far the trial is, for `pando status`.
      def progress = @proving.progress

      def begin_boot = begin_generation(:boot)

      # @return [Boolean] false when it cannot be done now; an event says why
      # @param force [Boolean] even if reforking is suspended, or the next try is to wait
      def refork(reason, force: false)
        resume(reason) if force
        obstacle = refork_obstacle
        return refuse(obstacle, reason) if obstacle

        worker = @sources.best
        return refuse("no worker is fit to become a mold", reason) unless worker

        Events.emit("refork.started", generation: @newest + 1, source: worker.pid, slot: worker.slot,
                                      requests: worker.requests, reason: reason)
        begin_generation(:refork, worker)
        true
      end

      # A clean image of what is to be served from now on.
      # @param command [Array<String>] what becomes its mold
      # @return [Generation]
      def reload(command) = begin_generation(:reload, nil, command)

      def mold_ready(child)
        return child.kill("its generation was given up") unless upcoming&.mold.equal?(child)

        upcoming.enter(:ready)
        upcoming.enter(:canary)
      end

      def mold_gone(child, reason)
        if upcoming&.mold.equal?(child) then discard(upcoming, reason, child.detail)
        elsif current&.mold.equal?(child) then lose_current(reason)
        elsif @proving.kept&.mold.equal?(child) then let_go(reason)
        end
      end

      def worker_ready(child)
        return unless upcoming&.number == child.generation && upcoming.canary?

        upcoming.enter(:rolling) unless @proving.try(upcoming, child)
      end

      # Called for each that had come up, while its row is still its own.
      # @param fault [Symbol] :none: it was to go; :elsewhere: somebody killed it; :own
      def worker_gone(child, reason, fault)
        @proving.bury(child, fault == :own)
        return if fault == :none || !(proving? && upcoming&.number == child.generation)

        complaint = fault == :own ? reason : @proving.lose(reason)
        conclude(complaint) if complaint
      end

      # It ended by itself: before it was ready, or hardly later.
      # @param innocent [Boolean] the kernel refused the fork: the mold is not to blame
      def worker_failed(child, reason, innocent: false)
        generation = serving_generation(child) or return
        generation.backoff.fail
        bad = generation.equal?(upcoming) ? !tolerable?(generation, innocent) : hopeless?(generation)
        return discard(generation, reason, child.detail) if bad

        complaint = @proving.worker_failed(reason) unless innocent || generation.equal?(upcoming)
        conclude(complaint) if complaint
      end

      # Its self-check did not come back. A fork may catch a lock at a bad moment once; twice it is the mold's fault.
      def child_unfit(child, reason)
        generation = serving_generation(child) or return
        generation.backoff.fail
        return if generation.count_unfit < UNFIT
        return discard(generation, reason, child.detail) if generation.equal?(upcoming)

        generation.end_mold("discarded")
        lose_current(reason)
        @backoff.fail
      end

      # It wants to go and has not done anything: the next one waits, lest we fork for ever.
      def worker_wasted(child) = serving_generation(child)&.backoff&.fail

      # The rollout is through, or there was none to do.
      def establish
        generation = upcoming
        last = current
        @upcoming = nil
        @current = generation
        @proven = true
        @reforks = 0 unless generation.source # a schedule begins anew with a cold mold
        @reforks += 1 if generation.purpose == :refork
        kept = @proving.established(generation, last)
        kept ? last.enter(:kept) : retire(last)
        @backoff.reset unless kept
        generation.enter(:current, seconds: generation.age)
        finished(generation)
        @suspension.lift("generation #{generation.number} serves") unless kept || generation.heal?
      end

      # New workers are to come from the upcoming generation from now on.
      def raise_floor
        @floor.raise_to(upcoming.number) unless upcoming.heal?
      end

      # When to refork, and from whom.
      def policy=(policy)
        @policy = @sources.policy = policy
      end

      private

      def begin_generation(purpose, source = nil, *command)
        let_go("the next generation is on its way") if @proving.kept
        @newest += 1
        @upcoming = Generation.new(@newest, purpose, source)
        upcoming.mold = source ? @spawner.mold_from(source, @newest) : @spawner.cold_mold(@newest, *command)
        return upcoming.tap { |one| discard(one, "the process could not be started", nil) } unless upcoming.mold

        Events.emit("mold.booting", **upcoming.mold.identity, reason: purpose) unless source
        upcoming
      end

      # The old mold is dead: its best child takes its place, else a clean image.
      def heal = begin_generation(:heal, @sources.heir)

      def refork_when_due
        threshold = @policy.threshold(@reforks)
        return if threshold.nil? || @proving.watch? || refork_obstacle
        return unless @sources.candidates.any? { |worker| worker.requests >= threshold }

        refork("a worker served #{threshold} requests")
      end

      def refork_obstacle
        return "reforking is switched off" unless @policy.manual?
        return "generation #{upcoming.number} is #{upcoming.state}" if upcoming
        return "there is no mold" unless current
        return "reforking is suspended: try `pando refork --force`" if suspension.suspended?
        return "the last attempt failed, the next one waits" unless @backoff.over?

        "a worker is starting or leaving" if @roster.any? { |child| child.worker? && !child.ready? }
      end

      def refuse(obstacle, reason)
        Events.emit("refork.refused", reason: obstacle, wanted: reason)
        false
      end

      def serving_generation(child) = [upcoming, current].compact.find { |one| one.number == child.generation }

      def hopeless?(generation) = generation.backoff.failures >= LAST_TRY && @roster.ready_workers.empty?
      def tolerable?(generation, innocent) = innocent && generation.backoff.failures < LAST_TRY

      def lose_current(reason)
        let_go("its successor's mold is lost")
        retired = current
        @current = nil
        retired.enter(:retired, reason: reason)
      end

      def retire(generation, reason = nil)
        return unless generation

        generation.enter(:retired, reason: reason)
        generation.end_mold("retired")
      end

      # Who is on trial, or watched, has shown what it is worth.
      # @param verdict [Symbol, String] see Proving#look
      def conclude(verdict)
        return unproven(verdict) unless verdict == :passed
        return prove_for_good unless proving?

        Events.emit("canary.passed", generation: upcoming.number, **@proving.progress)
        @proving.conclude
        upcoming.enter(:rolling)
      end

      def prove_for_good
        @backoff.reset
        let_go("generation #{current.number} has proved itself")
        @suspension.lift("generation #{current.number} has proved itself")
      end

      def unproven(reason)
        return roll_back(reason) unless proving?

        Events.emit("canary.failed", generation: upcoming.number, **@proving.progress, reason: reason)
        discard(upcoming, "its canary did not prove itself: #{reason}", nil)
      end

      # All workers are replaced from the last good mold.
      def roll_back(reason)
        bad = current
        @reforks -= 1 if bad.purpose == :refork
        good = @proving.release
        discard(bad, "its workers do not prove themselves: #{reason}", nil)
        @current = good
        good.enter(:current)
      end

      # The mold that was kept is no longer needed.
      def let_go(reason) = retire(@proving.release, reason)

      def resume(reason)
        @suspension.lift(reason)
        @backoff.reset
      end

      def discard(generation, reason, detail)
        @upcoming = nil if generation.equal?(upcoming)
        @current = nil if generation.equal?(current)
        @floor.discard(generation.number)
        @proving.discarded(generation)
        generation.source&.barred = true
        generation.enter(:discarded, reason: reason, backtrace: (detail if @proven))
        generation.end_mold("discarded")
        end_starting(generation)
        delay = @backoff.fail
        judge(reason, detail, delay)
        @suspension.count(reason) if generation.purpose == :refork
      end

      def judge(reason, detail, delay)
        hopeless = @roster.ready_workers.empty? && (!@proven || @backoff.failures >= LAST_TRY)
        return @give_up.call(reason, detail) if hopeless

        Events.emit("refork.postponed", seconds: delay.round(2), reason: reason)
      end

      # They would take the places of workers that do well.
      def end_starting(generation)
        @roster.workers.each do |worker|
          worker.call_off("its generation was discarded") if worker.generation == generation.number && worker.starting?
        end
      end

      def finished(generation)
        return unless generation.purpose == :refork

        Events.emit("refork.finished", generation: generation.number, pid: generation.mold.pid, seconds: generation.age)
      end
    end
  end
end
