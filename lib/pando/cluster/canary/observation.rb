# frozen_string_literal: true

require "pando/cluster/canary/comparison"
require "pando/cluster/canary/memory_check"
require "pando/cluster/canary/stopwatch"

module Pando
  module Cluster
    module Canary
      # Checks a generation at intervals until it has passed or is found wanting: as a Trial or as a RolloutWatch.
      #
      # Owned by Evaluation, in the monitor.
      # @abstract
      class Observation
        # @return [Float] when the next check is due, on Sys.now
        attr_reader :due

        # @param number [Integer] of the generation
        # @param terms [Criteria]
        # @param records [Records]
        # @param heard_at [#call] see Stopwatch
        def initialize(number, terms, roster, records, memory: MemoryCheck.new(roster), heard_at: :itself.to_proc,
                       now: Sys.now)
          @number = number
          @terms = terms
          @roster = roster
          @records = records
          @memory = memory
          @began_at = @due = now
          @stopwatch = Stopwatch.new(heard_at, now)
        end

        # @return [Float] the most seconds that it can still take
        def remaining(now = Sys.now) = [limit - @stopwatch.read(now), 0.0].max

        # For events and `pando status`.
        # @return [Hash]
        def progress(now = Sys.now)
          { requests: @records.of(@number).requests, seconds: (now - @began_at).round(3) }
        end

        private

        def workers = @roster.ready_workers.select { |worker| worker.generation == @number }

        # @param before [Curve]
        def oversized(before) = workers.filter_map { |worker| @memory.complaint(worker, before) }.first
      end

      # Watches all workers after the rollout, while the old mold is kept: they may show what one worker has not. They
      # are compared with the old workers at the same age. No old worker serves any more, so only grave differences
      # count.
      class RolloutWatch < Observation
        LOOK = 0.5
        CHANCE = 1e-6
        CRASHES = 0.005
        # Workers that may fail at their start.
        FAILURES = 2

        # @param before [Curve] of those that it has replaced
        # @param size [Integer] how many workers it has
        def initialize(number, terms, roster, records, before:, size:, **more)
          super(number, terms, roster, records, **more)
          @before = before
          @size = size
          @failures = 0
        end

        # @return [Symbol, String, nil] :passed, or what is wrong with it; nil: it continues
        def look(now = Sys.now)
          return if now < @due

          @due = now + LOOK
          curve = @records.of(@number)
          comparison = Comparison.new(curve, @before)
          listened = @stopwatch.read(now)
          comparison.crashing(CRASHES) || comparison.complaint(CHANCE) || hopeless(comparison, curve) ||
            oversized(@before) || conclude(curve, now - @began_at, listened)
        end

        # A worker did not come up.
        # @return [String, nil] what is wrong
        def fail(reason)
          @failures += 1
          reason if @failures >= FAILURES
        end

        private

        def limit = @terms.longest

        # There may be hardly a request from before to compare with.
        def hopeless(comparison, curve) = (comparison.hopeless if curve.requests >= Comparison::ENOUGH)

        # @param age [Float] seconds @param listened [Float] those in which requests could come
        def conclude(curve, age, listened)
          return if workers.any?(&:still?)

          :passed if listened >= @terms.longest || @terms.enough?(curve.requests, age, @size)
        end
      end
    end
  end
end
