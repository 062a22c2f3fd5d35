# frozen_string_literal: true

require "pando/cluster/backoff"
require "pando/cluster/generations/conditions"
require "pando/cluster/generations/survey"
require "pando/cluster/memory/gauge"

module Pando
  module Cluster
    class Generations
      # Decides when to refork and which worker forks the next mold, and knows what prevents a refork. Several failures
      # in a row suspend automatic reforks until a user asks for one or a generation proves itself: something in the app
      # does not survive reforks, and each attempt costs. Owned by Generations, in the monitor.
      class Reforks
        include Brief
        include Wording
        extend Serializable

        # Obstacles that are remembered as told.
        TOLD = 20
        # The end of an obstacle's text that counts others of its kind. A changed count is not worth an event.
        MORE = / \(and \d+ more\)\z/

        # An obstacle that passes by itself.
        UNSETTLED = "a worker is starting or leaving"
        # A refork would delay the node's jobs, and no other process would share its memory.
        LONE = "there is one node only; with a `count:` of 2 or more they share memory"
        # No worker can be promoted, for good or for now.
        UNSAFE = "no worker is fit to become a mold: the app has made each of them unsafe to fork. `worker.unsafe` " \
                 "in the log says why, and `pando doctor` finds more"
        UNFIT = "no worker is fit to become a mold now: each one is at a long job, or about to be replaced. " \
                "Try again later"
        private_constant :LONE, :UNSAFE, :UNFIT

        serialize count: :integer, failures: :integer, suspended: :flag, survey: Survey, policy: Object

        # Reforks since the last mold that booted from cold.
        attr_reader :count
        # Failed reforks in a row.
        attr_reader :failures
        attr_writer :policy

        # @param conditions [#obstacle, #quiet?] further obstacles to an automatic refork
        def initialize(roster, policy, generations, backoff, options,
                       gauge: Memory::Gauge.new, conditions: Conditions::NONE)
          @roster = roster
          @policy = policy
          @options = options
          @generations = generations
          @backoff = backoff
          @conditions = conditions
          @survey = Survey.new(roster, generations, gauge, options)
          @pause = Backoff.new
          @count = @count_before = @failures = 0
          @told = []
          @asked = false
        end

        def any? = count.positive?
        def suspended? = !!@suspended
        # @return [Boolean] whether no worker is ever promoted, not even by hand
        def off? = !@policy.manual?

        # Called in each turn in which no generation is on its way.
        def reconcile
          reason = wanted if @pause.over?
          refork(reason, asked: false) if reason
        end

        def by_itself? = @policy.measures? || !@policy.threshold(0).nil?

        # When to measure next.
        def due = ([@survey.due, @pause.due].compact.max if @policy.measures? && @backoff.over? && !lone?)

        # The whole server has stood still: its container was frozen.
        def stood_still(seconds) = @survey.stood_still(seconds)

        # The state of the policy, for `pando status`.
        def explain = @policy.measures? && lone? ? { **@policy.explain, waits: LONE } : @policy.explain

        # Obstacles to an automatic refork.
        def obstacle
          return "generation #{@generations.current.number} is watched" if @generations.watching?

          hindrance || @generations.lost_threads.obstacle || @conditions.obstacle || (unfit if candidates.empty?)
        end

        def quiet? = @conditions.quiet?

        # @return [Child, nil] a worker that starts or leaves, if that is the only obstacle to a refork
        def blocking_worker = (unsettled if hindrance == UNSETTLED)

        # Has the best worker fork the next mold.
        # @param force [Boolean] even if reforking is suspended, or the next attempt would have to wait
        # @param asked [Boolean] whether a user waits for the answer; false: the policy wants it
        # @return [Boolean] false: it cannot be done now; an event says why
        def refork(reason, force: false, asked: true)
          resume(reason) if force
          obstacle = hindrance
          worker = best_source unless obstacle
          return !!refuse(obstacle || unfit, reason, asked: asked) unless worker

          @asked = asked
          @wanted = reason
          !@generations.begin_generation(:refork, worker).nil?
        end

        def begun(number, worker)
          Events.emit("refork.started", generation: number, source: worker.pid, slot: worker.slot,
                                        requests: worker.requests, reason: @wanted, choice: justify(worker))
        end

        # @param except [Array<Child>] those that have been asked
        # @return [Child, nil] the policy's choice for a refork
        def best_source(except = [])
          pardon if never_failed.empty?
          @policy.choose(preferred(except))
        end

        # Takes the place of a dead mold. A worker at a long job is chosen only if no other is there; and not at all
        # once such a one has failed to fork in time.
        # @param except [Array<Child>] those that are not asked now
        # @return [Child, nil] nil: a cold boot is better, as when workers have repeatedly failed as molds
        def healing_source(except = [])
          return if suspended? || off? || @generations.lost_threads.heal_cold?

          willing = never_failed - except
          return soonest(willing) if @options.jobs && @generations.released?

          free = willing.reject(&:engaged?)
          @policy.choose(free.any? || occupied? ? free : willing)
        end

        # Takes the place of a worker that was asked and has not forked.
        # @param anybody [Boolean] even one that is at a long request
        def substitute(generation, except, anybody: false)
          return healing_source(except) if generation.heal?

          free = unattached((fit_workers - except).reject(&:engaged?))
          @policy.choose(free) || (best_source(except) if anybody)
        end

        # @param refork [Boolean] whether the mold was for a refork
        def refused_by(worker, obstacle, refork: true, **facts)
          begun = @generations.upcoming&.number if refork
          refuse(obstacle, (@wanted if refork), asked: @asked && refork, **{ generation: begun }.compact,
                                                slot: worker.slot, source: worker.pid, **facts)
        end

        # No worker has forked the mold.
        def called_off(obstacle, worker)
          refused_by(worker, obstacle)
          postpone(@backoff, obstacle)
        end

        # The kernel has no process for the mold, which is not the worker's fault. The next automatic attempt waits
        # longer each time; an attempt that a user asks for does not wait. An error has told of the process.
        def put_off(obstacle, worker)
          refused_by(worker, obstacle, told: true)
          postpone(@pause, obstacle)
        end

        def established(generation)
          @count_before = count
          @count = 0 unless generation.source # a schedule begins anew with a cold mold
          return unless generation.purpose == :refork

          @count += 1
          @told = []
          @pause.reset
        end

        def proved(generation)
          @backoff.reset
          lift_suspension("generation #{generation.number} has proved itself") unless generation.heal?
        end

        # The generation was discarded. If it was watched, the one before it serves again.
        def failed(generation, reason)
          @count = @count_before if generation.established? && !generation.equal?(@generations.current)
          return unless generation.purpose == :refork

          @failures += 1
          limit = @options.refork_failures
          return if suspended? || limit.nil? || @failures < limit

          @suspended = true
          Events.emit("refork.suspended", count: @failures, reason: reason)
        end

        private

        # An idle node forks at once. One that is asked takes no other jobs until its running ones have ended. So it is
        # not asked at long ones; nor is another one, while one that was asked is still at its jobs.
        def soonest(nodes)
          idle, busy = nodes.partition { |node| node.row.busy_since.nil? }
          return @policy.choose(idle) if idle.any?

          @policy.choose(busy.reject { |node| node.engaged?(Promotion::PATIENCE) }) unless occupied?
        end

        # Whether a worker was asked to fork and is still at the job that it had.
        def occupied? = @roster.any?(&:declined_while_busy?)

        # @return [String, nil] why the policy wants a refork now
        def wanted
          return (measured unless lone?) if @policy.measures?

          threshold = @policy.threshold(count)
          return if threshold.nil? || @generations.watching? || hindrance || @generations.lost_threads.obstacle

          "a worker served #{counted(threshold, "request")}" if candidates.any? { |one| one.requests >= threshold }
        end

        def measured
          vitals = @survey.look(count) or return
          decision = @policy.decide(vitals, self)
          Events.emit("refork.decided", generation: @generations.current.number, **decision.facts) if decision.news?
          decision.reason if decision.refork?
        end

        # A refork is not possible now. The policy tries again and again, so each obstacle causes one event until a
        # refork succeeds. A user who asks always gets an event.
        # @param asked [Boolean] whether a user waits for the answer
        # @param facts [Hash] the worker that refused to be forked from, if one did; whether another event has told why
        def refuse(obstacle, reason, asked:, **facts)
          if obstacle == @generations.lost_threads.refusal # the thread has an event of its own
            Events.emit("refork.withheld", reason: obstacle, wanted: reason)
            return
          end

          facts[:told] = true if @generations.changed_state.told?(obstacle)
          known = @told.include?(kind = obstacle.sub(MORE, ""))
          @told = [*@told.last(TOLD - 1), kind] unless known
          Events.emit("refork.refused", reason: obstacle, wanted: reason, **facts) if asked || !known
          nil
        end

        # After a refork that a user has asked for, the next one need not wait.
        def postpone(backoff, obstacle)
          return if @asked

          Events.emit("refork.postponed", seconds: backoff.fail.round(2), reason: obstacle)
          nil
        end

        # @return [String] why this worker is the {#best_source}
        def justify(worker)
          best = preferred
          text = @policy.justify(worker, best)
          busy = (fit_workers - best).count(&:engaged?)
          text += "; left out: #{busy} at a long request" if busy.positive?
          worker.connections.zero? ? text : "#{text}; it parts with #{counted(worker.connections, "connection")}"
        end

        # Obstacles to any refork.
        def hindrance
          return "reforking is switched off" if off?
          return under_way(@generations.upcoming) if @generations.upcoming
          return "there is no mold" unless @generations.current
          return "reforking is suspended: try `pando refork --force`" if suspended?
          return backing_off unless @backoff.over?

          UNSETTLED if unsettled
        end

        def lone? = @options.jobs && @roster.workers.size < 2

        def unsettled = @roster.staying_workers.find { |worker| !worker.ready? }

        def under_way(upcoming)
          what, limit = @generations.occupation
          most = ", and that ends within #{[limit.round(3), 1].max.ceil} s" if limit
          "#{what}#{most}; begun #{upcoming.age.round} s ago. Wait for its end, and ask again: `pando status` shows " \
            "how far it is"
        end

        # Why no worker is fit.
        def unfit
          @generations.lost_threads.refusal || @generations.changed_state.refusal || connected ||
            (@roster.ready_workers.none? || @roster.ready_workers.any?(&:fork_safe?) ? UNFIT : UNSAFE)
        end

        def connected
          return unless @roster.ready_workers.any? { |worker| keeps_connections?(worker) }

          "a fork would end the WebSockets of its worker, and `drain` says to keep them: give them a pool of " \
            "their own with refork: false"
        end

        def backing_off
          seconds = [@backoff.due.to_f - Sys.now, 0.1].max.round(1)
          "the last attempt failed, the next one waits for another #{seconds} s: `pando refork --force` does not"
        end

        def resume(reason)
          lift_suspension(reason)
          @backoff.reset
        end

        def lift_suspension(reason)
          @failures = 0
          return unless suspended?

          @suspended = false
          Events.emit("refork.resumed", reason: reason)
        end

        # A worker at a long request would delay the refork, and a source ends its long-lived connections (WebSockets):
        # other workers are preferred, unless they have served much less.
        def preferred(except = []) = unattached(prefer(fit_workers - except, &:engaged?))
        def unattached(workers) = prefer(workers) { |worker| worker.connections.positive? }

        # The workers without the defect that the block tells, unless each of them has served much less than the others.
        def prefer(workers, &defect)
          others = workers.reject(&defect)
          most = workers.map(&:requests).max.to_i
          others.any? { |worker| worker.requests * 2 >= most } ? others : workers
        end

        # Those without a long request; if each has one, all.
        def candidates
          fit = fit_workers
          fit.all?(&:engaged?) ? fit : fit.reject(&:engaged?)
        end

        def fit_workers = never_failed.then { |willing| willing.any? ? willing : forkable }

        # Once all have failed as sources, the fault was probably elsewhere: then all may be asked again.
        def pardon = forkable.each { |worker| worker.excluded_as_source = false }

        def never_failed = forkable.reject(&:excluded_as_source?)
        def forkable = @roster.ready_workers.select { |worker| may_fork?(worker) }

        def may_fork?(worker)
          !@generations.outdated?(worker) && worker.fork_safe? && !worker.condemned? && !worker.declined_while_busy? &&
            !worker.declined && @generations.lost_threads.fit?(worker) && !keeps_connections?(worker)
        end

        # A worker closes them before it is forked.
        def keeps_connections?(worker) = @options.drain.positive? && worker.connections.positive?
      end
    end
  end
end
