# frozen_string_literal: true

require "pando/cluster/canary/comparison"
require "pando/cluster/canary/memory_check"
require "pando/cluster/canary/stopwatch"

module Pando
  module Cluster
    module Canary
      # What follows the rollout: the old mold is kept for a while, for what one worker has not shown all of them may.
      # They are compared with those before at the same age; nothing is left to compare with that serves now, so only
      # what is grave counts.
      #
      # Owned by Evaluation, in the monitor.
      #
      # @api private
      class Observation
        LOOK = 0.5
        CHANCE = 1e-6
        CRASHES = 0.005
        # Workers that may fail at their start.
        FAILURES = 2

        # @return [Float] seconds on Sys.now
        attr_reader :due

        # @param number [Integer] of the generation that serves
        # @param before [Curve] of those that it has replaced
        # @param workers [Integer] how many it has
        # @param heard_at [#call] see Stopwatch
        def initialize(number, terms, roster, records, before, workers, memory: MemoryCheck.new(roster),
                       heard_at: :itself.to_proc, now: Sys.now)
          @number = number
          @terms = terms
          @roster = roster
          @records = records
          @before = before
          @workers = workers
          @memory = memory
          @began_at = @due = now
          @stopwatch = Stopwatch.new(heard_at, now)
          @failures = 0
        end

        # @return [Symbol, String, nil] :passed, or what is wrong with it; nil: it goes on
        def look(now = Sys.now)
          return if now < @due

          @due = now + LOOK
          curve = @records.of(@number)
          comparison = Comparison.new(curve, @before)
          quiet = @stopwatch.read(now)
          comparison.crashing(CRASHES) || comparison.complaint(CHANCE) || hopeless(comparison, curve) || fat ||
            conclude(curve, now - @began_at, quiet)
        end

        # A worker did not come up.
        # @return [String, nil] what is wrong
        def fail(reason)
          @failures += 1
          reason if @failures >= FAILURES
        end

        # @return [Float] seconds for which it can still go on
        def remaining(now = Sys.now) = [@terms.longest - @stopwatch.read(now), 0.0].max

        # @return [Hash] for `pando status`
        def progress(now = Sys.now)
          { requests: @records.of(@number).requests, seconds: (now - @began_at).round(3) }
        end

        private

        # There may be hardly a request from before to compare with.
        def hopeless(comparison, curve) = (comparison.hopeless if curve.requests >= Comparison::ENOUGH)

        def workers = @roster.ready_workers.select { |worker| worker.generation == @number }

        def fat = workers.filter_map { |worker| @memory.complaint(worker, @before) }.first

        # @param age [Float] seconds @param quiet [Float] those in which requests could come
        def conclude(curve, age, quiet)
          return if workers.any?(&:still?)

          :passed if quiet >= @terms.longest || @terms.enough?(curve.requests, age, @workers)
        end
      end
    end
  end
end
