# frozen_string_literal: true

require "pando/cluster/brief"
require "pando/cluster/serializable"
require "pando/cluster/generations/conditions"
require "pando/cluster/generations/sources"
require "pando/cluster/generations/survey"
require "pando/cluster/generations/training"
require "pando/cluster/memory/gauge"
require "pando/cluster/canary/suspension"
require "pando/counted"
require "pando/events"

module Pando
  module Cluster
    class Generations
      # When to refork, from which worker, and what stands against it. Owned by Generations, in the monitor.
      #
      # @api private
      class Reforks
        include Brief
        include Counted

        extend Serializable

        # Obstacles that are remembered as told.
        TOLD = 20
        # What an obstacle says at its end of others of its kind: their number is no news.
        MORE = / \(and \d+ more\)\z/

        # An obstacle that passes by itself.
        UNSETTLED = "a worker is starting or leaving"
        # A refork would keep its jobs waiting, and there is nobody to share memory with.
        LONE = "there is one node only; with a `count:` of 2 or more they share memory"
        private_constant :UNSETTLED, :LONE

        # A policy too may remember something.
        serialize count: :integer, suspension: Canary::Suspension, survey: Survey, policy: Object

        # @return [Integer] since the last mold that booted from cold
        attr_reader :count
        # @return [Canary::Suspension]
        attr_reader :suspension
        # @return [Training]
        attr_reader :training

        # @param policy [#threshold, #measures?, #resting?, #manual?, #choose, #justify, #trains?] see Pando::Refork::Policy
        # @param backoff [Throttling::Backoff] until the next try
        # @param options [#refork_failures, #trainee, #jobs]
        # @param conditions [#obstacle, #quiet?] what else speaks against a refork that nobody has asked for
        def initialize(roster, policy, generations, backoff, options,
                       gauge: Memory::Gauge.new, conditions: Conditions::NONE)
          @roster = roster
          @policy = policy
          @options = options
          @generations = generations
          @backoff = backoff
          @conditions = conditions
          @survey = Survey.new(roster, generations, gauge, options)
          @sources = Sources.new(roster, policy, generations.method(:outdated?), generations.lost_threads)
          @training = Training.new(roster, @sources, -> { trains?(options.trainee) })
          @suspension = Canary::Suspension.new(-> { options.refork_failures })
          @pause = Throttling::Backoff.new
          @count = 0
          @told = []
          @asked = true
        end

        def policy=(policy)
          @policy = @sources.policy = policy
        end

        # @return [String, nil] why it is time
        def wanted
          return unless @pause.over?
          return (measured unless lone?) if @policy.measures?

          threshold = @policy.threshold(count)
          return if threshold.nil? || @generations.watching? || hindrance || @generations.lost_threads.obstacle

          return if @sources.candidates.none? { |worker| worker.requests >= threshold }

          "a worker served #{counted(threshold, "request")}"
        end

        # @return [Boolean] whether one ever comes that nobody has asked for
        def by_itself? = @policy.measures? || !@policy.threshold(0).nil?

        # @return [Boolean] whether one may come before long
        def expected?
          return false if !@policy.manual? || suspension.suspended?
          return !@policy.resting? && !lone? if @policy.measures?

          threshold = @policy.threshold(count)
          !threshold.nil? && @sources.candidates.any? { |worker| worker.requests * 2 >= threshold }
        end

        # When something is to be looked at again, nil: at the next event.
        def due = (@survey.due if @policy.measures? && @backoff.over?)

        # How it stands with the policy, for `pando status`.
        # @return [Hash{Symbol => Object}]
        def explain = @policy.measures? && lone? ? { **@policy.explain, waits: LONE } : @policy.explain

        # What speaks against a refork that nobody has asked for.
        # @return [String, nil]
        def obstacle
          return "generation #{@generations.current.number} is watched" if @generations.watching?

          hindrance || @generations.lost_threads.obstacle || @conditions.obstacle ||
            (unfit if @sources.candidates.empty?)
        end

        # @return [Child, nil] the worker whose start or end is all that an order would have to wait for
        def passer = (unsettled if hindrance == UNSETTLED)

        # @return [Boolean] whether hardly anybody would notice
        def quiet? = @conditions.quiet?

        # @param reason [String]
        # @param force [Boolean] even if reforking is suspended, or the next try is to wait
        # @param asked [Boolean] by somebody who waits for the answer; false: it is the policy's wish
        # @return [Child, nil] the worker that is to fork the next mold; nil: an event says why none is
        def source(reason, force, asked: true)
          @asked = asked
          resume(reason) if force
          what = hindrance
          return refuse(what, reason) if what

          @sources.best || refuse(unfit, reason)
        end

        # A refork is not possible now. A policy tries again and again: each obstacle is told once, until a refork has
        # succeeded. Somebody who asks is always answered.
        # @param obstacle [String] @param reason [String, nil] why it was wanted
        # @param facts [Hash] the worker that refused to be forked from, if one did; whether another event has told why
        # @return [nil]
        def refuse(obstacle, reason, **facts)
          return withhold(obstacle, reason) if obstacle == @generations.lost_threads.refusal

          facts[:told] = true if @generations.changed_state.told?(obstacle)
          known = @told.include?(kind = obstacle.sub(MORE, ""))
          @told = [*@told.last(TOLD - 1), kind] unless known
          Events.emit("refork.refused", reason: obstacle, wanted: reason, **facts) if @asked || !known
          nil
        end

        # In place of a worker that was asked, and has not come to it.
        # @param generation [Generation] that is on its way
        # @param except [Array<Child>] those that were asked
        # @param anybody [Boolean] even one that is at a long request
        # @return [Child, nil]
        def substitute(generation, except, anybody: false)
          return @sources.heir(except) if generation.heal?

          @sources.free(except) || (@sources.best(except: except) if anybody)
        end

        # None could be had.
        # @param from [Hash] the worker that was asked last
        def called_off(obstacle, reason, **from)
          refuse(obstacle, reason, **from)
          Events.emit("refork.postponed", seconds: @backoff.fail.round(2), reason: obstacle) unless @asked
        end

        # The kernel has no process for the mold: neither the worker that was asked is to blame, nor anything else. What
        # the policy wants waits longer each time; whoever asks is not kept waiting. An error has told of the process.
        # @return [nil]
        def put_off(obstacle, reason, **from)
          refuse(obstacle, reason, **from, told: true)
          Events.emit("refork.postponed", seconds: @pause.fail.round(2), reason: obstacle) unless @asked
        end

        # @param worker [Child] as {source} has chosen it
        # @return [String] why that one
        def justify(worker)
          text = @policy.justify(worker, @sources.preferred)
          text += "; left out: #{@sources.busy} at a long request" if @sources.busy.positive?
          worker.connections.zero? ? text : "#{text}; it parts with #{counted(worker.connections, "connection")}"
        end

        # @return [Child, nil] who is to take the place of a mold that is gone; nil: a clean image is, as where workers
        #   have failed as molds so often that they are not asked any more
        # @param except [Array<Child>]
        def heir(except = []) = (@sources.heir(except) unless suspension.suspended?)

        # @param generation [Generation] that serves in all slots
        def established(generation)
          @count = 0 unless generation.source # a schedule begins anew with a cold mold
          return unless generation.purpose == :refork

          @count += 1
          @told = []
          @pause.reset
        end

        # @param generation [Generation] that need not prove anything any more
        def proved(generation)
          @backoff.reset
          suspension.lift("generation #{generation.number} has proved itself") unless generation.heal?
        end

        # @param generation [Generation] that came to nothing
        def failed(generation, reason)
          return unless generation.purpose == :refork

          @count -= 1 if generation.established?
          suspension.count(reason)
        end

        private

        # While all are watched, each of them is to serve requests.
        def trains?(trainee)
          return false if !trainee || @generations.upcoming || @generations.current.nil? || @generations.watching?

          @policy.trains?(count) || (trainee == :once_at_least && count.zero?)
        end

        def measured
          vitals = @survey.look(count) or return
          decision = @policy.decide(vitals, self)
          Events.emit("refork.decided", generation: @generations.current.number, **decision.facts) if decision.news?
          @survey.relax if @policy.resting?
          decision.reason if decision.refork?
        end

        # What speaks against any refork.
        def hindrance
          upcoming = @generations.upcoming
          return "reforking is switched off" unless @policy.manual?
          return under_way(upcoming) if upcoming
          return "there is no mold" unless @generations.current
          return "reforking is suspended: try `pando refork --force`" if suspension.suspended?
          return waiting unless @backoff.over?

          UNSETTLED if unsettled
        end

        # @return [Boolean] a pool of one node
        def lone? = @options.jobs && @roster.workers.size < 2

        def unsettled = @roster.find { |child| child.worker? && !child.ready? }

        def under_way(upcoming)
          what, limit = @generations.occupation
          most = ", and that ends within #{[limit, 1].max.ceil} s" if limit
          "#{what}#{most}; begun #{upcoming.age.round} s ago. Wait for its end, and ask again: `pando status` shows " \
            "how far it is"
        end

        # An event of its own has told of the thread.
        def withhold(obstacle, reason)
          Events.emit("refork.withheld", reason: obstacle, wanted: reason)
          nil
        end

        # Why there is no candidate.
        def unfit
          @generations.lost_threads.refusal || @generations.changed_state.refusal || "no worker is fit to become a mold"
        end

        def waiting
          seconds = [@backoff.due.to_f - Sys.now, 0.1].max.round(1)
          "the last attempt failed, the next one waits for another #{seconds} s: `pando refork --force` does not"
        end

        def resume(reason)
          suspension.lift(reason)
          @backoff.reset
        end
      end
    end
  end
end
