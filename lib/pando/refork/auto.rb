# frozen_string_literal: true

require "pando/cluster/carried"
require "pando/refork/auto/cycle"
require "pando/refork/auto/paying"
require "pando/refork/auto/rules"
require "pando/refork/auto/verdict"
require "pando/refork/auto/warming"
require "pando/refork/policy"

module Pando
  module Refork
    # `refork :auto`, the default: decides by what is measured. Two phases: while the app warms up it reforks at double
    # the age each time (Warming); then only when it pays (Paying). docs/reforking.md has the rules.
    #
    # A function of what it is shown: it reads no clock and no process, so that it can be tried on recorded curves. It
    # remembers generations that have served; an attempt that fails leaves no trace.
    #
    # Owned by Cluster::Reforks, in the monitor.
    class Auto < Policy
      extend Cluster::Carried

      # What a refork must save to be worth it: a share of the memory, and bytes a worker.
      WORTH = 0.03
      WORTH_BYTES = 1_048_576
      # Reforks before which one worker is warmed up for all, and so many times the requests after which the next one
      # is due: if it has not come by then, something holds it up.
      TRAINED = 3
      OVERDUE = 4
      # Seconds that a quiet moment is waited for.
      PATIENCE = 10.0
      # Nothing stands against a refork.
      Undisturbed = Struct.new(:obstacle, :quiet?).new(nil, true).freeze

      carry generation: :integer, reforks: :integer, settled: :flag, told: :text,
            cycle: Cycle, warming: Warming, paying: Paying

      # @param rules [Rules]
      def initialize(rules = Rules.new)
        super()
        @rules = rules
        @reforks = 0
        begin_anew
      end

      # @param share [Float] of the memory @param size [Float] bytes a worker
      # @return [Boolean] whether it is worth a refork
      def self.worth?(share, size) = share >= WORTH && share * size >= WORTH_BYTES

      # (see Policy#measures?)
      def measures? = true

      # @return [:warming, :paying, :resting]
      def phase
        return :resting if resting?

        @settled ? :paying : :warming
      end

      # (see Policy#resting?)
      def resting? = part.resting?

      # @param vitals [Cluster::Vitals]
      # @param conditions [#obstacle, #quiet?] asked only when a refork is due
      # @return [Decision]
      def decide(vitals, conditions = Undisturbed)
        turn_over(vitals) unless vitals.generation == @generation
        @cycle.add(vitals)
        @phase = phase
        verdict = admit(pressing || look, vitals, conditions)
        @settled = true if verdict.action == :settle
        @last = decision(verdict)
        @told = "#{verdict.action}: #{verdict.reason}" if @last.news?
        @last
      end

      # One worker is warmed up for all while the app is not warm yet.
      # @param reforks [Integer] see {#threshold}
      def trains?(reforks) = phase == :warming && reforks < TRAINED && @cycle.most < @warming.target * OVERDUE

      # For `pando status`: how it stands, what was decided last, and what is waited for.
      # @return [Hash{Symbol => Object}]
      def explain
        facts = @last ? @last.facts.slice(:age, :saving, :cost, :pss) : {}
        { phase: phase, decided: @told, waits: (@last.reason if @last && !@last.news?), **facts }.compact
      end

      private

      def price = @paying.cost(@cycle)
      def part = @settled ? @paying : @warming

      # What is known of the app is from the last mold that booted from cold on.
      def turn_over(vitals)
        if vitals.reforks.zero? then begin_anew
        elsif @generation && vitals.reforks > @reforks then follow
        end
        @cycle = Cycle.new
        @generation = vitals.generation
        @reforks = vitals.reforks
      end

      def begin_anew
        @settled = false
        @cycle = Cycle.new
        @warming = Warming.new(@rules)
        @paying = Paying.new(@rules)
      end

      # A refork has ended a cycle; the first one began cold.
      def follow
        @warming.follow(@cycle)
        @paying.follow(@cycle, counts: @reforks.positive?)
      end

      # While the app warms up a refork may pay before its turn: a full collection, say, has cost much of what was
      # shared.
      def look
        verdict = part.look(@cycle, price)
        return verdict if @settled || @reforks.zero? || verdict.action != :wait

        @paying.due(@cycle, price) || verdict
      end

      # What does not ask for the cost.
      def pressing
        return over_target if @rules.memory && @cycle.pss.to_i > @rules.memory && @cycle.worth?
        return unless @rules.ceiling && @cycle.seconds >= @rules.ceiling && @cycle.most >= Warming::FIRST

        Verdict.new(:refork, "the last one was #{@cycle.seconds.round} s ago", "ceiling #{@rules.ceiling} s")
      end

      def over_target
        Verdict.new(:refork, "it saves #{(@cycle.saving * 100).round(1)}% of the memory, which is over its target",
                    "memory #{@cycle.pss.round} > #{@rules.memory}")
      end

      # A refork that is due may have to wait all the same.
      def admit(verdict, vitals, conditions)
        unless verdict.action == :refork
          @due_since = nil
          return verdict
        end
        @due_since ||= vitals.seconds
        hindrance = too_early(vitals) || conditions.obstacle || too_busy(vitals, conditions)
        hindrance ? Verdict.new(:wait, "a refork is due, but #{hindrance}", verdict.rule) : verdict
      end

      def too_early(vitals)
        "the last one was less than #{@rules.floor} s ago" if @reforks.positive? && vitals.seconds < @rules.floor
      end

      def too_busy(vitals, conditions)
        "a quiet moment is waited for" unless vitals.seconds - @due_since >= PATIENCE || conditions.quiet?
      end

      def decision(verdict)
        Decision.new(action: verdict.action, reason: verdict.reason, rule: verdict.rule, phase: @phase,
                     age: @cycle.age, saving: @cycle.saving, cost: price, pss: @cycle.pss)
      end
    end
  end
end
