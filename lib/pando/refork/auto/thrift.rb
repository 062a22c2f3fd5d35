# frozen_string_literal: true

require "pando/refork/auto/cycle"
require "pando/refork/auto/verdict"
require "pando/refork/policy"

module Pando
  module Refork
    class Auto < Policy
      # Whether the first refork is worth its price, of which only the least is known. What it can save at most is what
      # the workers' memory has grown by since they were born. Where that is much it comes at once; where it is little,
      # when its price is next to nothing beside the CPU time that has been spent anyway; where it is hardly anything,
      # not at all.
      #
      # @api private
      class Thrift
        extend Cluster::Carried

        # Bytes a worker that are much, when it is looked at for the first time, and later.
        MUCH = 8 * 1_048_576
        MUCH_LATER = 2 * MUCH
        # Seconds of CPU a worker that a refork of the smallest app takes: mold, canary, audits and the worker itself.
        LEAST_CPU = 0.025
        # The share of the CPU time so far that is next to nothing.
        NOTHING = 0.005

        carry told: :flag

        def initialize
          @told = false
        end

        # @return [Boolean] whether it has been put off
        def resting? = @told

        # @param cycle [Cycle] from a cold mold
        # @return [Verdict, nil] nil: nothing against it
        def look(cycle)
          growth = cycle.grown
          return if growth.nil? || growth >= (@told ? MUCH_LATER : MUCH)

          share = growth / cycle.size
          return put_off(*little(share, growth, cycle)) unless Auto.worth?(share, cycle.size)
          return put_off(*dear(share, growth, cycle)) unless cheap?(cycle)

          Verdict.new(:refork, "#{most(share, growth)}, and costs less than #{percent(NOTHING)} of the CPU time so far",
                      "#{LEAST_CPU} <= #{NOTHING} * #{cycle.cpu.round(2)}")
        end

        private

        def cheap?(cycle) = cycle.cpu.to_f * NOTHING >= LEAST_CPU

        # With the share that would have been worth it.
        def little(share, growth, cycle)
          ["#{most(share, growth)}: too little",
           "#{share.round(3)} < #{[WORTH, WORTH_BYTES / cycle.size].max.round(3)}"]
        end

        def dear(share, growth, cycle)
          ["#{most(share, growth)}: it waits until it costs less than #{percent(NOTHING)} of the CPU time so far",
           "#{LEAST_CPU} > #{NOTHING} * #{cycle.cpu.to_f.round(2)}"]
        end

        # Told once.
        def put_off(reason, rule)
          action = @told ? :wait : :rest
          @told = true
          Verdict.new(action, reason, rule)
        end

        def most(share, growth)
          "a refork would save at most #{percent(share)} of the memory, #{(growth / 1_048_576).round(1)} MiB a worker"
        end

        def percent(share) = "#{(share * 100).round(1)}%"
      end
    end
  end
end
