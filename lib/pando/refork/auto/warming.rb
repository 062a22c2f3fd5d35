# frozen_string_literal: true

require "pando/refork/auto/cycle"
require "pando/refork/auto/verdict"
require "pando/refork/policy"

module Pando
  module Refork
    class Auto < Policy
      # The first phase: the first requests warm most, so the first refork comes early and each next one at double the
      # age, until a generation at the age at which its predecessor was forked has hardly less memory than that one had.
      #
      # @api private
      class Warming
        extend Cluster::Carried

        # Requests before the first refork.
        FIRST = 50

        carry before_age: :number, before_size: :number, judged: :flag

        def initialize
          @judged = false
        end

        # @param cycle [Cycle] that a refork has ended; one before its time says nothing
        def follow(cycle)
          return if cycle.age < FIRST

          @before_age = cycle.age
          @before_size = cycle.size
          @judged = @before_size.nil?
        end

        # @return [Float] requests at which the next refork is due
        def target = @before_age ? @before_age * 2 : FIRST.to_f

        # @param cycle [Cycle] that serves
        # @return [Verdict]
        def look(cycle)
          return due(cycle, "#{FIRST} requests") unless @before_age

          judge(cycle) || due(cycle, "twice the #{@before_age.round} requests of the one before")
        end

        private

        # @return [Verdict, nil] nil: it was worth it
        def judge(cycle)
          return if @judged
          return Verdict.new(:wait, "its memory is to be compared at #{@before_age.round} requests") if young?(cycle)

          gain = 1 - (cycle.size / @before_size)
          return settled(gain) if gain < WORTH

          @judged = true
          nil
        end

        def young?(cycle) = cycle.age < @before_age || cycle.size.nil?

        def settled(gain)
          Verdict.new(:settle, "at the age of #{@before_age.round} requests it has #{(gain * 100).round(1)}% less " \
                               "memory than the generation before it had",
                      "gain #{gain.round(3)} < #{WORTH}")
        end

        def due(cycle, rule)
          return Verdict.new(:wait, "the next refork is due at #{target.round} requests") if cycle.age < target

          Verdict.new(:refork, "a worker served #{cycle.age.floor} requests", rule)
        end
      end
    end
  end
end
