# frozen_string_literal: true

require "pando/refork/auto/cycle"
require "pando/refork/auto/verdict"
require "pando/refork/policy"

module Pando
  module Refork
    class Auto < Policy
      # The second phase: a refork must pay. It saves a share s of the memory for as long as the generation before has
      # lived, g requests, and costs as much CPU time as c requests: due when s*g >= rho*c.
      #
      # Where memory grows no more s*g stays what it is, so it stops by itself: that is told, and nothing is decided
      # until memory has grown again.
      #
      # @api private
      class Paying
        extend Cluster::Carried

        # Costs that the median is taken of.
        REMEMBERED = 3
        # Growth over a doubling of the age below which memory has come to rest.
        REST = 0.02

        carry costs: :numbers, rest_size: :number

        # @param rules [Rules]
        def initialize(rules)
          @rules = rules
          @costs = []
        end

        # @param cycle [Cycle] that a refork has ended
        # @param counts [Boolean] whether it began with one
        def follow(cycle, counts:)
          @rest_size = nil
          @costs = [*@costs, cycle.cost].compact.last(REMEMBERED) if counts
        end

        def resting? = !@rest_size.nil?

        # @param cycle [Cycle] that serves
        # @return [Float, nil] requests a worker
        def cost(cycle)
          all = [*@costs, cycle.cost].compact.last(REMEMBERED).sort
          all[all.size / 2]
        end

        # @param cycle [Cycle] that serves
        # @param cost [Float, nil] requests
        # @return [Verdict]
        def look(cycle, cost)
          return Verdict.new(:wait, "memory has not been measured yet") unless cycle.size
          return rest(cycle) if resting?
          return Verdict.new(:wait, "what a refork costs is not known yet") unless cost

          weigh(cycle, cost)
        end

        # @return [Verdict, nil] nil: a refork would not pay, or nobody knows
        def due(cycle, cost)
          saving = cycle.saving
          pays(cycle, saving, cost) if cost && cycle.worth? && saving * cycle.age >= @rules.rho * cost
        end

        private

        # Memory that has grown by what is worth a refork is looked at again.
        def rest(cycle)
          growth = 1 - (@rest_size / cycle.size)
          unless Auto.worth?(growth, cycle.size)
            return Verdict.new(:wait, "memory has come to rest; it is looked at again when it has grown")
          end

          @rest_size = nil
          cycle.watch_growth_anew
          Verdict.new(:rearm, "memory grows again", "growth #{growth.round(3)} >= #{WORTH}")
        end

        def weigh(cycle, cost)
          verdict = due(cycle, cost) and return verdict
          return stop(cycle) if cycle.growth && cycle.growth < REST

          Verdict.new(:wait, outlook(cycle, cycle.saving, cost))
        end

        def pays(cycle, saving, cost)
          Verdict.new(:refork, "it saves #{(saving * 100).round(1)}% of the memory and costs #{cost.round} requests",
                      "#{saving.round(3)} * #{cycle.age.round} >= #{@rules.rho} * #{cost.round}")
        end

        def stop(cycle)
          @rest_size = cycle.size
          Verdict.new(:rest, "memory grows no more: another refork would not pay",
                      "growth #{cycle.growth.round(3)} < #{REST}")
        end

        def outlook(cycle, saving, cost)
          return "a refork would save #{(saving * 100).round(1)}% of the memory, too little" unless cycle.worth?

          "a refork would pay at #{(@rules.rho * cost / saving).round} requests"
        end
      end
    end
  end
end
