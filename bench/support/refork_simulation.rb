# frozen_string_literal: true

require "pando/refork"

module Bench
  # Simulates a server with recorded curves. Its policy sees what the monitor would show it. Each refork starts the
  # curve of a warmer ancestor, which has served its own requests and those of its ancestors. A rollout takes no time.
  class ReforkSimulation
    # @!attribute average [Float] bytes over all requests
    # @!attribute final [Float] bytes
    # @!attribute reforks [Array<Integer>] the age at each refork
    # @!attribute cpu [Float] seconds of a worker
    # @!attribute decisions [Array<Decision>] those that are reported
    Result = Struct.new(:average, :final, :reforks, :cpu, :decisions, keyword_init: true)

    STEP = 10 # requests between two decisions
    STRIDE = 50 # requests between two reforks in the search for the best schedule
    # Nothing prevents a refork.
    UNDISTURBED = Struct.new(:obstacle, :quiet?).new(nil, true).freeze

    # @param curves [ReforkCurves]
    # @param requests [Integer] of each worker
    # @param rate [Float] requests per second of each worker
    def initialize(curves, requests: 10_000, rate: 50.0, workers: 4)
      @curves = curves
      @requests = requests
      @rate = rate
      @workers = workers
    end

    # @param policy [Pando::Refork::Policy]
    # @yieldparam vitals [Vitals] before the policy sees it, to add errors of measurement
    # @return [Result]
    def run(policy, &disturb)
      @policy = policy
      @disturb = disturb
      @warmth = @age = 0
      @sum = @cpu = 0.0
      @reforks = []
      @decisions = []
      decide if @policy.measures? # the measurement at birth
      (@requests / STEP).times { proceed }
      Result.new(average: @sum / (@requests / STEP), final: pss, reforks: @reforks,
                 cpu: @cpu + @curves.cpu(@warmth, @age), decisions: @decisions)
    end

    # The total cost of a run, with memory and CPU time in one figure: average bytes, plus the CPU time of its reforks
    # converted to bytes.
    # @param result [Result]
    # @param rate [Float] bytes whose use for a second costs as much as a second of CPU time
    # @return [Float] bytes
    def toll(result, rate)
      warmth = 0
      lives = [*result.reforks, @requests - result.reforks.sum]
      cpu = lives.sum { |life| cost(warmth, life).tap { warmth += life } }
      result.average + (rate * cpu / (@requests / @rate))
    end

    # The least toll of any schedule, given the curves.
    # @param rate [Float] see #toll
    # @param share [Float] the largest share of its CPU time that a generation may cost
    # @return [Float] bytes
    def least_toll(rate, share)
      steps = @requests / STRIDE
      tolls = Array.new(steps + 1, 0.0) # of the rest of the run, by its warmth at the start
      (steps - 1).downto(0) { |from| tolls[from] = least_rest(from, steps, tolls, rate, share) }
      tolls.first / (@requests / @rate)
    end

    private

    # One generation of the best length, and the generations after it.
    def least_rest(from, steps, tolls, rate, share)
      memory = 0.0
      (1..(steps - from)).filter_map do |life|
        memory += @curves.pss(from * STRIDE, (life - 0.5) * STRIDE) * STRIDE / @rate
        cpu = cost(from * STRIDE, life * STRIDE)
        next if from + life < steps && dear?(cpu, from * STRIDE, life * STRIDE, share)

        memory + (rate * cpu) + tolls[from + life]
      end.min
    end

    # Whether a generation takes more than its share of CPU time, in a warm app.
    def dear?(cpu, warmth, life, share)
      return false unless warmth > Pando::Refork::Auto::WARM

      [cpu, Pando::Refork::Auto::Cycle::LEAST_CPU * @workers].max > share * @curves.cpu(warmth, life) * @workers
    end

    # Seconds of CPU time that all workers of a generation use because it is young. The first one is not a refork, but
    # it warms up: what it leaves to be done, the next one does.
    def cost(warmth, life)
      above = @curves.cpu(warmth, life) - @curves.steady_cpu(life)
      [above, warmth.zero? ? 0.0 : Pando::Refork::Auto::Cycle::LEAST_CPU].max * @workers
    end

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
      vitals = Pando::Refork::Vitals.new(
        generation: @reforks.size, reforks: @reforks.size, seconds: @age / @rate, workers: @workers,
        age: @age.to_f, most: @age, pss: pss, cpu: @curves.cpu(@warmth, @age)
      )
      @disturb&.call(vitals)
      @policy.decide(vitals, UNDISTURBED).tap { |decision| @decisions << decision if decision.news? }
    end

    def refork
      @reforks << @age
      @cpu += @curves.cpu(@warmth, @age)
      @warmth += @age
      @age = 0
    end
  end
end
