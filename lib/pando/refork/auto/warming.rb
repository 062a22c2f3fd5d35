# frozen_string_literal: true

require "pando/refork/auto/cycle"
require "pando/refork/auto/thrift"
require "pando/refork/auto/verdict"
require "pando/refork/policy"

module Pando
  module Refork
    class Auto < Policy
      # The first phase: the first requests warm most, so the first refork comes early and each next one at double the
      # age, until a generation at the age at which its predecessor was forked has hardly less memory than that one had,
      # and has taken hardly less CPU time; or until the next one would not pay, where it comes so late that its price
      # is known. The first one of an app that has little to gain waits until it costs next to nothing (Thrift).
      #
      # @api private
      class Warming
        extend Cluster::Carried

        # Requests before the first refork.
        FIRST = 50
        # Memory that becomes known later than at so many times the age of the one before is not compared: it has
        # gone on growing, and would seem to be more for that.
        LATE = 1.25
        # An ancestor that has served more is warm, whatever its children's memory is like.
        WARM = 3200
        # CPU time by which generations at the same age differ, as a share, though nothing has changed: only what is
        # more counts.
        NOISE = 0.1

        carry before_age: :number, before_most: :number, before_size: :number, before_cpu: :number, young_age: :number,
              young_cpu: :number, cpu_there: :number, gain: :number, found: :text, judged: :flag, thrift: Thrift

        # @param rules [Rules]
        def initialize(rules)
          @rules = rules
          @judged = false
          @thrift = Thrift.new
        end

        # @return [Boolean] whether not even the first refork would be worth its price
        def resting? = @before_age.nil? && @thrift.resting?

        # @param cycle [Cycle] that a refork has ended; one before its time says nothing
        def follow(cycle)
          return if cycle.most < FIRST

          @before_age = cycle.age
          @before_most = [cycle.most, @before_most.to_f].max # one that has paid came early
          @before_size = cycle.size
          @before_cpu = cycle.cpu
          @judged = @before_size.nil?
          @gain = @found = @young_age = @young_cpu = @cpu_there = nil
        end

        # @return [Float] requests at which the next refork is due
        def target = @before_most ? @before_most * 2 : FIRST.to_f

        # @param cycle [Cycle] that serves
        # @param cost [Float, nil] requests, see Paying
        # @return [Verdict]
        def look(cycle, cost)
          return first(cycle) unless @before_age

          follow_cpu(cycle)
          judge(cycle) || due(cycle, "twice the #{@before_most.round} requests of the one before", cost)
        end

        private

        def first(cycle)
          objection = @thrift.look(cycle) if @rules.thrift && cycle.most >= FIRST
          objection || due(cycle, "#{FIRST} requests")
        end

        # @return [Verdict, nil] nil: it was worth it
        def judge(cycle)
          return warm if @before_most > WARM
          return if @judged
          return Verdict.new(:wait, "its memory is to be compared at #{@before_age.round} requests") if young?(cycle)

          @judged = true
          return if late?(cycle)

          compare(1 - (cycle.size / @before_size), cpu_saved)
          Verdict.new(:settle, @found, "gain #{@gain.round(3)} < #{least}") unless Auto.worth?(@gain, @before_size)
        end

        # Shares of what the generation before had; one that has much more memory has had bad luck (a full collection
        # early on): the next one need not.
        def compare(memory, cpu)
          @gain = memory.abs + (@rules.rho * [cpu.to_f - NOISE, 0.0].max)
          @found = ["at the age of #{@before_age.round} requests it has #{less(memory)} memory than the generation " \
                    "before it had", ("has taken #{less(cpu)} CPU time" if cpu)].compact.join(", and ")
        end

        # @return [Float, nil] nil: it was not seen at that age
        def cpu_saved = (1 - (@cpu_there / @before_cpu) if @cpu_there && @before_cpu&.positive?)

        # What it has taken until the age that is looked at, between the look before and the one after.
        def follow_cpu(cycle)
          return if @cpu_there || cycle.cpu.nil?

          if cycle.age < @before_age
            @young_age = cycle.age
            @young_cpu = cycle.cpu
          elsif @young_cpu
            part = (@before_age - @young_age) / (cycle.age - @young_age)
            @cpu_there = @young_cpu + (part * (cycle.cpu - @young_cpu))
          end
        end

        def young?(cycle) = cycle.age < @before_age || (cycle.size.nil? && !late?(cycle))
        def late?(cycle) = cycle.age > @before_age * LATE

        def warm
          Verdict.new(:settle, "it was forked from a worker that had served #{@before_most.round} requests",
                      "age #{@before_most.round} > #{WARM}")
        end

        def due(cycle, rule, cost = nil)
          return Verdict.new(:wait, "the next refork is due at #{target.round} requests") if cycle.most < target
          return unpaid(cycle, cost) if cost && @gain && @gain * cycle.age * 2 < @rules.rho * cost

          Verdict.new(:refork, ["a worker served #{cycle.most.floor} requests", @found].compact.join("; "), rule)
        end

        # The next generation would last twice as long.
        def unpaid(cycle, cost)
          Verdict.new(:settle, "the last refork was worth #{percent(@gain)} of the memory, and another one costs " \
                               "#{cost.round} requests",
                      "#{@gain.round(3)} * #{cycle.age.round * 2} < #{@rules.rho} * #{cost.round}")
        end

        # The share that would have been worth it.
        def least = [WORTH, WORTH_BYTES / @before_size].max.round(3)

        def percent(share) = "#{(share.abs * 100).round(1)}%"
        def less(share) = "#{percent(share)} #{share.negative? ? "more" : "less"}"
      end
    end
  end
end
