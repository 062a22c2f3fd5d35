# frozen_string_literal: true

require "pando/refork/policy"
require "pando/serializable"

module Pando
  module Refork
    class Auto < Policy
      # One generation's life so far: how its memory has grown, and what its start has cost. Sizes are bytes of all
      # workers, ages are requests of a worker, CPU time is seconds of a worker. Pure arithmetic. Owned by Auto, in the
      # monitor.
      class Cycle
        extend Serializable

        # Requests after which the cost of a refork is known roughly, and well: page faults, cold caches and compilation
        # are over by then.
        YOUNG = 25
        RIPE = 200
        # CPU time per worker of the smallest app's refork: canary, audits and the worker itself.
        LEAST_CPU = 0.025
        # Up to this many requests its memory counts as that at birth. A generation that was forked from a warm worker
        # is measured later; then the first measurement counts.
        BORN = 5
        # The least private memory of a worker, however young.
        OWN = 8 * 1_048_576
        # The share of its average request rate that counts as silence.
        SILENT = 0.02
        # The most seconds between two measurements that count as busy. Nothing is known of the rest of a longer gap.
        UNSEEN = 2.5

        serialize cold: :flag, age: :number, most: :number, seconds: :number, pss: :number, workers: :integer,
                  warmed: :number, born: :number, covered_to: :number, covered: :number, area: :number,
                  heard_at: :number, heard_age: :number, cpu: :number, young_age: :number, young_cpu: :number,
                  ripe_age: :number, ripe_cpu: :number, mold_cpu: :number, busy_for: :number

        # See Vitals.
        attr_reader :age, :most, :seconds, :pss, :workers, :cpu
        # Seconds since the last quiet moment; nil: this is one.
        attr_reader :busy_for

        def initialize(cold: true)
          @cold = cold
          @age = @most = @seconds = @area = @covered = @heard_at = @heard_age = 0.0
          @workers = 0
        end

        # @param quiet [Boolean] whether this is a quiet moment
        def add(vitals, quiet)
          advance(vitals.seconds, quiet)
          begin_memory_anew(vitals.workers) unless vitals.workers == @workers
          @age = vitals.age
          @most = vitals.most.to_f
          @warmed = (vitals.warmed || vitals.workers).to_f
          listen
          grow(vitals.pss) if vitals.pss
          @obstacle = vitals.obstacle
          @private = vitals.private
          @mold_cpu = vitals.mold_cpu
          spend(vitals.cpu) if vitals.cpu
        end

        # @return [Float] how much more memory it takes now than on average: the saving of another refork, if the next
        #   generation lives as this one has
        def excess = @pss && @covered.positive? ? [@pss - (@area / @covered), 0.0].max : 0.0

        # @return [Float, nil] how much it would have grown since its birth if all workers were as warm as the warmest:
        #   the most that another refork can save; nil: its size at birth is unknown
        def grown = @born && @pss && ([(@pss - @born) / @warmed, 0.0].max * @workers)

        # @return [Float, nil] the saving of another refork while there are no requests
        def copied = [(@pss - @born if @born && @pss), (@private - (@workers * OWN) if @private)].compact.max

        # @return [String] why its size is not known
        def unmeasured = @obstacle || "memory has not been measured yet"

        # @return [Float] seconds with hardly any requests
        def silence = @seconds - @heard_at

        # The CPU time of its first requests above that of as many others. While the app warms up, requests get cheaper
        # with each generation, which hides a part of the cost; so it is at least what the mold and the smallest worker
        # take.
        # @param pace [Float, nil] seconds of CPU that each of the others takes
        # @return [Float, nil] nil: it is too young
        def cost(pace)
          age, cpu = @ripe_age ? [@ripe_age, @ripe_cpu] : [@young_age, @young_cpu]
          [pace ? cpu - (age * pace) : 0.0, @mold_cpu.to_f + LEAST_CPU].max if age
        end

        # @return [Float, nil] seconds of CPU per request, without the first ones
        def pace = pace_since(@ripe_age, @ripe_cpu, RIPE) || pace_since(@young_age, @young_cpu, YOUNG)

        private

        def advance(seconds, quiet)
          @busy_for = quiet ? nil : @busy_for.to_f + (seconds - @seconds).clamp(0.0, UNSEEN)
          @seconds = seconds
        end

        def pace_since(age, cpu, least)
          (@cpu - cpu) / (@age - age) if age && @cpu && @age - age >= least
        end

        # Measurements of clusters of different sizes cannot be compared.
        def begin_memory_anew(workers)
          @workers = workers
          @pss = @born = @covered_to = nil
          @area = @covered = 0.0
        end

        # The age falls when workers are added.
        def listen
          @heard_age = [@heard_age, @age].min
          return if @age - @heard_age <= SILENT * @age / [@seconds, 1.0].max * silence

          @heard_at = @seconds
          @heard_age = @age
        end

        def grow(pss)
          @born ||= pss if @age <= BORN || !@cold
          if @pss && @seconds > @covered_to
            @area += (@seconds - @covered_to) * (@pss + pss) / 2.0
            @covered += @seconds - @covered_to
          end
          @covered_to = @seconds
          @pss = pss
        end

        def spend(cpu)
          @young_age, @young_cpu = @age, cpu if @young_age.nil? && @age >= YOUNG # rubocop:disable Style/ParallelAssignment
          @ripe_age, @ripe_cpu = @age, cpu if @ripe_age.nil? && @age >= RIPE # rubocop:disable Style/ParallelAssignment
          @cpu = cpu
        end
      end
    end
  end
end
