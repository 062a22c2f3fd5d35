# frozen_string_literal: true

require "pando/cluster/generations/vitals"
require "pando/refork"

module Bench
  # A server that lives on recorded curves: its policy sees what the monitor would show it, and each refork begins the
  # curve of a warmer ancestor, who has served all that its own ancestors and it have. A rollout takes no time.
  class ReforkSimulation
    # @!attribute average [Float] bytes over all requests
    # @!attribute final [Float] bytes
    # @!attribute reforks [Array<Integer>] the age at each
    # @!attribute cpu [Float] seconds of a worker
    # @!attribute decisions [Array<Decision>] those that are told
    Result = Struct.new(:average, :final, :reforks, :cpu, :decisions, keyword_init: true)

    STEP = 10 # requests between two looks

    # @param curves [ReforkCurves]
    # @param requests [Integer] of each worker
    # @param rate [Float] requests of each worker in a second
    def initialize(curves, requests: 10_000, rate: 50.0, workers: 4)
      @curves = curves
      @requests = requests
      @rate = rate
      @workers = workers
    end

    # @param policy [Pando::Refork::Policy]
    # @yieldparam vitals [Vitals] before the policy sees it: what is measured is never quite right
    # @return [Result]
    def run(policy, &disturb)
      @policy = policy
      @disturb = disturb
      @warmth = @age = 0
      @sum = @cpu = 0.0
      @reforks = []
      @decisions = []
      decide if @policy.measures? # what it takes at birth
      (@requests / STEP).times { proceed }
      Result.new(average: @sum / (@requests / STEP), final: pss, reforks: @reforks,
                 cpu: @cpu + @curves.cpu(@warmth, @age), decisions: @decisions)
    end

    private

    def pss = @curves.pss(@warmth, @age)

    def proceed
      @age += STEP
      @sum += pss
      refork if wanted?
    end

    def wanted?
      return decide.refork? if @policy.measures?

      threshold = @policy.threshold(@reforks.size)
      threshold && @age >= threshold
    end

    def decide
      vitals = Pando::Cluster::Generations::Vitals.new(
        generation: @reforks.size, reforks: @reforks.size, seconds: @age / @rate, workers: @workers,
        age: @age.to_f, most: @age, pss: pss, cpu: @curves.cpu(@warmth, @age)
      )
      @disturb&.call(vitals)
      @policy.decide(vitals).tap { |decision| @decisions << decision if decision.news? }
    end

    def refork
      @reforks << @age
      @cpu += @curves.cpu(@warmth, @age)
      @warmth += @age
      @age = 0
    end
  end
end
