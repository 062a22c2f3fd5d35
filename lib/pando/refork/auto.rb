# frozen_string_literal: true

require "pando/cluster/serializable"
require "pando/mebibytes"
require "pando/refork/auto/cycle"
require "pando/refork/auto/rules"
require "pando/refork/auto/verdict"
require "pando/refork/policy"

module Pando
  module Refork
    # `refork :auto`, the default: a refork is due when the memory that it saves, for as long as the generation has
    # lived, is worth more than the CPU time that it takes. While the app warms up, growth since birth counts as saved,
    # for the next generation will be warmer; after that, only what is above the average. docs/reforking.md has the
    # rules and the reasons.
    #
    # A function of what it is shown: it reads no clock and no process, so that it can be tried on recorded curves. It
    # remembers generations that have served; an attempt that fails leaves no trace.
    #
    # Owned by Cluster::Reforks, in the monitor.
    class Auto < Policy
      include Mebibytes
      extend Cluster::Serializable

      # What a refork must save to be worth it: a share of the memory, and bytes a worker.
      WORTH = 0.03
      WORTH_BYTES = 1_048_576
      # Requests before the first refork. Each next one of the warming comes at double the age.
      FIRST = 50
      # An ancestor that has served more is warm.
      WARM = 3200
      # Reforks before which one worker is warmed up for all, and so many times the requests after which the next one
      # is due: if it has not come by then, something holds it up.
      TRAINED = 3
      OVERDUE = 4
      # Costs that the median is taken of.
      REMEMBERED = 3
      # An idle server whose workers have hardly served is reforked after so many times the usual silence.
      HARDLY = 10
      # Requests after which an app that has grown by too little will hardly grow.
      GROWN = 800
      # Nothing stands against a refork.
      Undisturbed = Struct.new(:obstacle, :quiet?).new(nil, true).freeze

      serialize generation: :integer, reforks: :integer, warm: :flag, told: :text, lived: :number, ancestor: :number,
            costs: :numbers, pace: :number, cycle: Cycle

      # @param rules [Rules]
      def initialize(rules = Rules.for)
        super()
        @rules = rules
        begin_anew
      end

      # (see Policy#measures?)
      def measures? = true

      # @return [:warming, :paying]
      def phase = @warm ? :paying : :warming

      # There is nothing to be had.
      # (see Policy#resting?)
      def resting? = @cycle.age >= GROWN && !@cycle.grown.nil? && !worth?(@cycle.grown)

      # @param vitals [Cluster::Vitals]
      # @param conditions [#obstacle, #quiet?] asked only when a refork is due
      # @return [Decision]
      def decide(vitals, conditions = Undisturbed)
        turn_over(vitals) unless vitals.generation == @generation
        @cycle.add(vitals)
        verdict = admit(look, vitals, conditions)
        @last = decision(verdict)
        @warm = true if verdict.action == :settle
        @told = "#{verdict.action}: #{verdict.reason}" if @last.news?
        @last
      end

      # One worker is warmed up for all while the app is not warm yet.
      # @param reforks [Integer] see {#threshold}
      def trains?(reforks) = !@warm && !resting? && reforks < TRAINED && @cycle.most < target * OVERDUE

      # For `pando status`: how it stands, what was decided last, and what is waited for.
      # @return [Hash{Symbol => Object}]
      def explain
        facts = @last ? @last.facts.slice(:age, :saving, :cost, :pss) : {}
        { phase: phase, decided: @told, waits: (@last.reason if @last && !@last.news?), **facts }.compact
      end

      private

      # What is known of the app is from the last mold that booted from cold on.
      def turn_over(vitals)
        if vitals.reforks.zero? then begin_anew
        elsif @generation && vitals.reforks > @reforks then follow
        end
        @cycle = Cycle.new(cold: vitals.reforks.zero?)
        @generation = vitals.generation
        @reforks = vitals.reforks
      end

      def begin_anew
        @warm = false
        @lived = 0.0
        @costs = []
        @reforks = 0
        @ancestor = @pace = @told = @last = nil
        @cycle = Cycle.new
      end

      # A refork has ended a cycle; the first one began cold.
      def follow
        @costs = [*@costs, own_cost].compact.last(REMEMBERED)
        @ancestor = [@cycle.most, @ancestor.to_f].max # one that has paid came early
        @lived += @cycle.seconds
        @pace = @cycle.pace || @pace
      end

      def own_cost = (@cycle.cost(@pace) if @reforks.positive?)

      # @return [Float, nil] seconds of CPU, of all workers
      def cost
        all = [*@costs, own_cost].compact.last(REMEMBERED).sort
        all[all.size / 2]&.*(@cycle.workers)
      end

      def likely_cost = cost || (Cycle::LEAST_CPU * @cycle.workers)
      def price = @rules.rate * likely_cost

      # Whether it is a small part of the CPU time that the generation has had; where that cannot be known, it is. Those
      # of the warming are few, and save CPU time themselves: what one worker has compiled the others need not.
      def affordable? = @cycle.cpu.nil? || likely_cost <= @rules.share * @cycle.cpu * @cycle.workers

      def look
        if !@warm && @ancestor.to_f > WARM
          return Verdict.new(:settle, "it was forked from a worker that had served #{@ancestor.round} requests",
                             "#{@ancestor.round} > #{WARM}")
        end

        idle || turn || paid || Verdict.new(:wait, outlook)
      end

      # Whether it comes to more than its price, in bytes times seconds.
      def pays?(saving, seconds) = worth?(saving) && saving * seconds >= price

      def worth?(saving)
        saving >= @cycle.workers * WORTH_BYTES && saving >= @cycle.pss.to_f * WORTH
      end

      # What was written to while it served is shared again for as long as nobody asks for anything.
      def idle
        saving = @cycle.copied
        silence = @cycle.silence
        return unless saving && @cycle.age.positive? && silence >= @rules.lull * (@cycle.most < FIRST ? HARDLY : 1)
        return unless pays?(saving, silence)

        refork("there have been hardly any requests for #{silence.round} s, and it saves #{mebibytes(saving)}",
               saving, silence)
      end

      # Its turn has come while the app warms up.
      def turn
        return if @warm || @cycle.most < target

        reason = "a worker served #{@cycle.most.floor} requests"
        saving = @cycle.grown unless free?
        return Verdict.new(:refork, reason, "#{target.round} requests") unless saving

        refork(reason, saving, @cycle.seconds) if pays?(saving, @cycle.seconds)
      end

      # Something waits for the first refork.
      def free? = @reforks.zero? && !@rules.worth

      def paid
        saving = @cycle.excess
        return unless cost && @cycle.most >= FIRST && pays?(saving, @cycle.seconds) && affordable?

        refork("it saves #{mebibytes(saving)}, and takes #{cost.round(2)} s of CPU time", saving, @cycle.seconds)
      end

      # @return [Float] requests at which the next refork of the warming is due
      def target = @ancestor ? @ancestor * 2 : FIRST.to_f

      # @param saving [Float] bytes @param seconds [Float] for which it counts
      def refork(reason, saving, seconds)
        Verdict.new(:refork, reason, "#{mebibytes(saving)} * #{seconds.round} s >= #{mebibytes(price)} s", saving)
      end

      def outlook
        return "memory has not been measured yet" unless @cycle.pss
        return "the first refork is due at #{FIRST} requests" if @cycle.most < FIRST && @reforks.zero?

        saving = @warm ? @cycle.excess : [@cycle.grown.to_f, @cycle.excess].max
        said = "a refork would save #{mebibytes(saving)}"
        if !worth?(saving) then "#{said}, too little"
        elsif !pays?(saving, @cycle.seconds) then "#{said}: it pays when that lasts for #{(price / saving).round} s"
        elsif cost.nil? then "#{said}; what it costs is not known yet"
        elsif @warm then "#{said}, and take too much of the CPU time"
        else "the next refork is due at #{target.round} requests at the latest"
        end
      end

      # A refork that is due may have to wait all the same.
      def admit(verdict, vitals, conditions)
        unless verdict.action == :refork
          @due_since = nil
          return verdict
        end
        @due_since ||= vitals.seconds
        hindrance = too_early(vitals) || conditions.obstacle || too_busy(vitals, conditions)
        hindrance ? Verdict.new(:wait, "a refork is due, but #{hindrance}", verdict.rule, verdict.saving) : verdict
      end

      def too_early(vitals)
        pause = @rules.pause(@lived + vitals.seconds)
        "the last one was less than #{pause.round(1)} s ago" if @reforks.positive? && vitals.seconds < pause
      end

      def too_busy(vitals, conditions)
        return if vitals.seconds - @due_since >= @rules.patience || conditions.quiet?

        "a quiet moment is waited for"
      end

      def decision(verdict)
        Decision.new(action: verdict.action, reason: verdict.reason, rule: verdict.rule, phase: phase,
                     age: @cycle.age, saving: verdict.saving || @cycle.excess, cost: cost, pss: @cycle.pss)
      end
    end
  end
end
