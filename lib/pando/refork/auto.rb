# frozen_string_literal: true

require "pando/refork/auto/cycle"
require "pando/refork/policy"
require "pando/serializable"
require "pando/wording"

module Pando
  module Refork
    # What {Auto} has decided, and the figures behind it.
    #
    #   action  :refork, :settle (the app is warm) or :wait
    #   reason  in words
    #   rule    the rule that applied, with its figures
    #   phase   :warming or :paying
    #   age     requests a worker
    #   saving  bytes that a refork saves, by the rule
    #   cost    seconds of CPU that it takes, of all workers; nil: not known yet
    #   pss     bytes; nil: not known yet
    Decision = Struct.new(:action, :reason, :rule, :phase, :age, :saving, :cost, :pss, keyword_init: true) do
      def refork? = action == :refork

      def news? = action != :wait

      # @return [Hash{Symbol => Object}] for the event
      def facts
        { decision: action, phase: phase, reason: reason, rule: rule, age: age.round, pss: pss&.round,
          saving: saving.round, cost: cost&.round(3) }.compact
      end
    end

    # `refork :auto`, the default. A refork is due when saving * seconds >= rate * cost, and waits for a quiet moment if
    # there are any. docs/reforking.md explains the rule (How `:auto` decides).
    #
    # It reads no clock and no process, so that it can run on recorded curves. It learns from each generation that has
    # served, but forgets all of one that was rolled back. Owned by Cluster::Generations::Reforks, in the monitor.
    class Auto < Policy
      include Wording
      extend Serializable

      # A refork must save at least this share of the memory, and this many bytes a worker.
      WORTH = 0.03
      WORTH_BYTES = 1_048_576
      # Requests before the first refork. While the app warms up, each next refork comes at double the age.
      FIRST = 50
      # The app is warm once it was forked from a worker that had served more requests than this.
      WARM = 3200
      # Measured costs of which the median is taken.
      REMEMBERED = 3
      # The idle time that leads to a refork is this many times longer while workers have hardly served.
      HARDLY = 10

      GIB = 1024.0**3
      # The rules for each `prefer`. docs/reforking.md says where the rates come from (The price).
      PREFERENCES = {
        memory: { rate: 0.5 * GIB, share: 0.25, floor: 5.0, most: 30.0 },
        balanced: { rate: 2 * GIB, share: 0.03, floor: 10.0, most: 120.0 },
        cpu: { rate: 8 * GIB, share: 0.01, floor: 60.0, most: 600.0 }
      }.freeze
      # What is known of the app.
      KNOWN = %i[@warm @lived @costs @ancestor @pace].freeze
      private_constant :GIB, :PREFERENCES, :KNOWN

      # The constants of the rule that depend on settings.
      #
      #   prefer    the setting that they come from
      #   rate      bytes whose use for a second is worth a second of CPU time
      #   share     of all CPU time, the most that reforks may take, however much they save
      #   floor     seconds from one generation's rollout to the next refork, at first
      #   most      the longest such pause, reached once the app has served for twenty times as long
      #   patience  seconds without a quiet moment after which Pando no longer waits for one
      #   lull      seconds without requests after which the server counts as idle
      Rules = Struct.new(:prefer, :rate, :share, :floor, :most, :patience, :lull, keyword_init: true) do
        # @param scale [Numeric] seconds of production that a second stands for
        def self.for(prefer = :balanced, scale: 1)
          rules = PREFERENCES.fetch(prefer)
          times = { patience: 5.0, lull: 60.0, **rules.slice(:rate, :floor, :most) }
          new(prefer: prefer, **times.transform_values { |value| value / scale }, share: rules[:share])
        end

        # @param lived [Numeric] seconds that the app has served since its cold boot
        def pause(lived) = (lived / 20.0).clamp(floor, most)
      end

      serialize generation: :integer, reforks: :integer, warm: :flag, told: :text, lived: :number, ancestor: :number,
                costs: :numbers, pace: :number, cycle: Cycle

      def initialize(rules = Rules.for)
        super()
        @rules = rules
        begin_anew
      end

      def measures? = true

      def phase = @warm ? :paying : :warming

      # @param conditions [#obstacle, #quiet?] an obstacle is asked for only when a refork is due
      def decide(vitals, conditions)
        turn_over(vitals) unless vitals.generation == @generation
        @cycle.add(vitals, conditions.quiet?)
        @last = admit(apply_rule, vitals, conditions)
        @warm = true if @last.action == :settle
        @told = "#{@last.action}: #{@last.reason}" if @last.news?
        @last
      end

      # What it prefers, the phase, the last decision and what it waits for, for `pando status`.
      def explain
        facts = @last ? @last.facts.slice(:age, :saving, :cost, :pss) : {}
        waits = @last.reason if @last && !@last.news?
        { prefer: @rules.prefer, phase: phase, decided: @told, waits: waits, **facts }.compact
      end

      private

      # What is known of the app begins with the last mold that booted from cold.
      def turn_over(vitals)
        if @former && vitals.generation < @generation then go_back
        else
          @former = (KNOWN.to_h { |name| [name, instance_variable_get(name)] } if @generation)
          learn(vitals.reforks)
        end
        @cycle = Cycle.new(cold: vitals.reforks.zero?)
        @generation = vitals.generation
        @reforks = vitals.reforks
      end

      def learn(reforks)
        if reforks.zero? then begin_anew
        elsif @generation && reforks > @reforks then follow
        end
      end

      # The last generation was rolled back.
      def go_back
        @former.each { |name, value| instance_variable_set(name, value) }
        @former = nil
      end

      def begin_anew
        @warm = false
        @lived = 0.0
        @costs = []
        @reforks = 0
        @ancestor = @pace = @told = @last = nil
        @cycle = Cycle.new
      end

      # A refork has ended a cycle; the first cycle began cold.
      def follow
        @costs = costs
        @ancestor = [@cycle.most, @ancestor.to_f].max # a refork that pays comes at a lower age
        @lived += @cycle.seconds
        @pace = @cycle.pace || @pace
      end

      # The measured costs of the last reforks, seconds of CPU of a worker.
      def costs = [*@costs, (@cycle.cost(usual_pace) if @reforks.positive?)].compact.last(REMEMBERED)

      # That of the generation before. If that was too young, the later requests of this one tell; but not while the app
      # warms up, since the first requests take more for that reason alone.
      def usual_pace = @pace || (@cycle.pace if @warm)

      # @return [Float, nil] seconds of CPU, of all workers: the median
      def cost
        all = costs.sort
        middle = all[(all.size - 1) / 2, 2 - (all.size % 2)]
        middle.sum / middle.size * @cycle.workers if middle&.any?
      end

      def likely_cost = cost || (Cycle::LEAST_CPU * @cycle.workers)
      def price = @rules.rate * likely_cost

      def pays?(saving, seconds) = worth?(saving) && saving * seconds >= price

      def worth?(saving) = saving >= @cycle.workers * WORTH_BYTES && saving >= @cycle.pss.to_f * WORTH

      # Whether the cost is a small part of the CPU time that the generation has used; true if that is unknown. The few
      # reforks of the warming phase are not limited: they save CPU time, because code is compiled once for all workers.
      def affordable? = @cycle.cpu.nil? || likely_cost <= @rules.share * @cycle.cpu * @cycle.workers

      def apply_rule = when_warm || when_idle || when_warming || when_paying || decision(:wait, outlook)

      def when_warm
        return if @warm || @ancestor.to_f <= WARM

        decision(:settle, "it was forked from a worker that had served #{@ancestor.round} requests",
                 "#{@ancestor.round} > #{WARM}")
      end

      # The pages that requests made private are shared again, for as long as the server stays idle.
      def when_idle
        saving = @cycle.copied
        silence = @cycle.silence
        return unless saving && @cycle.age.positive? && silence >= @rules.lull * (@cycle.most < FIRST ? HARDLY : 1)
        return unless pays?(saving, silence)

        refork("there have been hardly any requests for #{silence.round} s, and it saves #{mebibytes(saving)}",
               saving, silence)
      end

      # While the app warms up, a refork is due by the number of requests.
      def when_warming
        return if @warm || @cycle.most < target

        reason = "a worker served #{@cycle.most.floor} requests"
        saving = @cycle.grown
        return decision(:refork, reason, "#{target.round} requests") unless saving

        refork(reason, saving, @cycle.seconds) if pays?(saving, @cycle.seconds)
      end

      def when_paying
        saving = @cycle.excess
        return unless cost && @cycle.most >= FIRST && pays?(saving, @cycle.seconds) && affordable?

        refork("it saves #{mebibytes(saving)}, and takes #{cost.round(2)} s of CPU time", saving, @cycle.seconds)
      end

      # @return [Float] requests at which the next refork of the warming phase is due
      def target = @ancestor ? @ancestor * 2 : FIRST.to_f

      # @param saving [Float] bytes @param seconds [Float] for which it counts
      def refork(reason, saving, seconds)
        decision(:refork, reason, "#{mebibytes(saving)} * #{seconds.round} s >= #{mebibytes(price)} s", saving)
      end

      def outlook
        return @cycle.unmeasured unless @cycle.pss
        return "the first refork is due at #{FIRST} requests" if @cycle.most < FIRST && @reforks.zero?

        saving = @warm ? @cycle.excess : [@cycle.grown.to_f, @cycle.excess].max
        said = "a refork would save #{mebibytes(saving)}"
        if !worth?(saving) then "#{said}, too little"
        elsif !pays?(saving, @cycle.seconds) then "#{said}: it pays when that lasts for #{(price / saving).round} s"
        elsif cost.nil? then "#{said}; its cost is not known yet"
        elsif @warm then "#{said}, and take too much of the CPU time"
        else "the next refork is due at #{target.round} requests at the latest"
        end
      end

      # A refork that is due may still have to wait.
      def admit(verdict, vitals, conditions)
        return verdict unless verdict.refork?

        hindrance = too_early(vitals) || conditions.obstacle || too_busy
        return verdict unless hindrance

        decision(:wait, "a refork is due, but #{hindrance}", verdict.rule, verdict.saving)
      end

      def too_early(vitals)
        pause = @rules.pause(@lived + vitals.seconds)
        "the last one was less than #{pause.round(1)} s ago" if @reforks.positive? && vitals.seconds < pause
      end

      # A server that has had no quiet moment for a while will hardly have one soon, so waiting gains nothing.
      def too_busy
        "Pando waits for a quiet moment" if @cycle.busy_for && @cycle.busy_for < @rules.patience
      end

      def decision(action, reason, rule = nil, saving = @cycle.excess)
        Decision.new(action: action, reason: reason, rule: rule, phase: phase, age: @cycle.age, saving: saving,
                     cost: cost, pss: @cycle.pss)
      end
    end
  end
end
