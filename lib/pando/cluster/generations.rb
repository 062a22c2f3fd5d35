# frozen_string_literal: true

require "pando/cluster/dampers"
require "pando/cluster/floor"
require "pando/cluster/generation"
require "pando/cluster/generations_carriage"
require "pando/cluster/sources"

module Pando
  module Cluster
    # Which generation serves, which one is on its way, and what to do when a
    # mold dies. Owned by the monitor.
    #
    # @api private
    class Generations
      include GenerationsCarriage

      # Failed boots in a row after which a cluster without workers gives up.
      LAST_TRY = 5

      # Children whose self-check did not come back, after which their mold is given up.
      UNFIT = 2

      # What a mold that is no longer wanted is told, and its end called.
      ENDS = %w[retired discarded].freeze

      attr_reader :current, :upcoming, :reforks

      # @param policy [#threshold, #manual?, #choose] see Pando::Refork::Policy
      # @param give_up [#call] called with a reason and a backtrace when nothing can be served
      # @param dampers [Dampers] that of the mold: one that dies again and again is replaced later each time
      def initialize(roster, spawner, policy, give_up, dampers: Dampers.new)
        @dampers = dampers
        @roster = roster
        @spawner = spawner
        @policy = policy
        @give_up = give_up
        @sources = Sources.new(roster, policy, method(:outdated?))
        @backoff = Backoff.new
        @newest = -1
        @floor = Floor.new
        @reforks = @failed_boots = 0
        @proven = false
      end

      # @return [Boolean] whether a rollout would replace it
      def outdated?(worker) = @floor.above?(worker)

      # @return [Boolean] whether it was forked for a generation that came to nothing
      def discarded?(child) = @floor.discarded?(child)

      # Called at each turn of the monitor's loop.
      def reconcile
        lose_current("it is gone") if current&.mold&.gone?
        return if upcoming || !@backoff.over?

        if current.nil? then (heal if @dampers.over?(:mold))
        else refork_when_due
        end
      end

      # When reconcile has something to do again, nil: at the next event.
      def due = @backoff.due

      def begin_boot = begin_generation(:boot)

      # @return [Boolean] false when it cannot be done now; an event says why
      def refork(reason)
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
      # @param listeners [Array<Listener>] that it accepts from
      # @return [Generation]
      def reload(command, listeners) = begin_generation(:reload, nil, command, listeners)

      def mold_ready(child)
        return child.kill("its generation was given up") unless upcoming&.mold.equal?(child)

        upcoming.enter(:ready)
        upcoming.enter(:canary)
      end

      def mold_gone(child, reason)
        if upcoming&.mold.equal?(child) then discard(upcoming, reason, child.detail)
        elsif current&.mold.equal?(child) then lose_current(reason)
        end
      end

      def worker_ready(child)
        serving_generation(child)&.backoff&.succeed
        upcoming.enter(:rolling) if upcoming&.number == child.generation && upcoming.canary?
      end

      # It ended by itself: before it was ready, or hardly later.
      # @param innocent [Boolean] the kernel refused the fork: the mold is not to blame
      def worker_failed(child, reason, innocent: false)
        generation = serving_generation(child) or return
        generation.backoff.fail(reason)
        bad = generation.equal?(upcoming) ? !tolerable?(generation, innocent) : hopeless?(generation)
        discard(generation, reason, child.detail) if bad
      end

      # Its self-check did not come back. A fork may catch a lock at a bad moment once; twice it is the mold's fault.
      def child_unfit(child, reason)
        generation = serving_generation(child) or return
        generation.backoff.fail(reason)
        return if generation.count_unfit < UNFIT
        return discard(generation, reason, child.detail) if generation.equal?(upcoming)

        generation.end_mold("discarded")
        lose_current(reason)
        @backoff.fail
      end

      # It wants to go and has not done anything: the next one waits, lest we fork for ever.
      def worker_wasted(child, reason = nil) = serving_generation(child)&.backoff&.fail(reason)

      # The rollout is through, or there was none to do.
      def establish
        generation = upcoming
        @upcoming = nil
        retire(current) if current
        @current = generation
        @proven = true
        @reforks = 0 unless generation.source # a schedule begins anew with a cold mold
        @reforks += 1 if generation.purpose == :refork
        @failed_boots = 0
        @backoff.reset
        generation.become_current
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

      def begin_generation(purpose, source = nil, *release)
        @newest += 1
        @upcoming = Generation.new(@newest, purpose, source)
        upcoming.mold = source ? @spawner.mold_from(source, @newest) : @spawner.cold_mold(@newest, *release)
        return upcoming.tap { |one| discard(one, "the process could not be started", nil) } unless upcoming.mold

        Events.emit("mold.booting", **upcoming.mold.identity, reason: purpose) unless source
        upcoming
      end

      # The old mold is dead: its best child takes its place, else a clean image.
      def heal = begin_generation(:heal, @sources.heir)

      def refork_when_due
        threshold = @policy.threshold(@reforks)
        return unless threshold && refork_obstacle.nil?
        return unless @sources.candidates.any? { |worker| worker.requests >= threshold }

        refork("a worker served #{threshold} requests")
      end

      def refork_obstacle
        return "reforking is switched off" unless @policy.manual?
        return "generation #{upcoming.number} is #{upcoming.state}" if upcoming
        return "there is no mold" unless current
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
        @dampers.fail(:mold, reason)
        retired = current
        @current = nil
        retired.enter(:retired, reason: reason)
      end

      def retire(generation)
        generation.enter(:retired)
        generation.end_mold("retired")
      end

      def discard(generation, reason, detail)
        @upcoming = nil if generation.equal?(upcoming)
        @current = nil if generation.equal?(current)
        @floor.discard(generation.number)
        generation.source&.then { |source| source.barred = true unless source.tied_up? }
        generation.enter(:discarded, reason: reason, backtrace: (detail if @proven))
        generation.end_mold("discarded")
        end_starting(generation)
        @failed_boots += 1 if generation.source.nil?
        delay = @backoff.fail
        judge(reason, detail, delay)
      end

      def judge(reason, detail, delay)
        hopeless = @roster.ready_workers.empty? && (!@proven || @failed_boots >= LAST_TRY)
        return @give_up.call(reason, detail) if hopeless

        Events.emit("refork.postponed", seconds: delay.round(2), reason: reason)
      end

      # They would take the places of workers that do well.
      def end_starting(generation)
        @roster.workers.each do |worker|
          worker.call_off("its generation was discarded") if worker.generation == generation.number && worker.starting?
        end
      end
    end
  end
end
