# frozen_string_literal: true

require "pando/cluster/serializable"
require "pando/refork/policy"

module Pando
  module Refork
    class Auto < Policy
      # One generation's life so far: how its memory has grown, and what its start has cost. Sizes are bytes of all
      # workers, ages are requests of a worker, CPU time is seconds of a worker. Pure arithmetic. Owned by Auto, in the
      # monitor.
      #
      # @api private
      class Cycle
        extend Cluster::Serializable

        # Requests after which the cost of a refork is known roughly, and well: page faults, cold caches and compilation
        # are over by then.
        YOUNG = 25
        RIPE = 200
        # CPU time per worker of the smallest app's refork: mold, canary, audits and the worker itself.
        LEAST_CPU = 0.025
        # Up to this many requests its memory counts as that at birth. A generation that was forked from a warm worker
        # is measured later; then the first measurement counts.
        BORN = 5
        # The least private memory of a worker, however young.
        OWN = 8 * 1_048_576
        # The share of its average request rate that counts as silence.
        SILENT = 0.02

        serialize cold: :flag, age: :number, most: :number, seconds: :number, pss: :number, workers: :integer,
                  warmed: :number, born: :number, covered_to: :number, covered: :number, area: :number,
                  heard_at: :number, heard_age: :number, cpu: :number, young_age: :number, young_cpu: :number,
                  ripe_age: :number, ripe_cpu: :number

        # See Survey::Vitals.
        attr_reader :age, :most, :seconds, :pss, :workers, :cpu

        def initialize(cold: true)
          @cold = cold
          @age = @most = @seconds = @area = @covered = @heard_at = @heard_age = 0.0
          @workers = 0
        end

        def add(vitals)
          @seconds = vitals.seconds
          begin_memory_anew(vitals.workers) unless vitals.workers == @workers
          @age = vitals.age
          @most = vitals.most.to_f
          @warmed = (vitals.warmed || vitals.workers).to_f
          listen
          grow(vitals.pss) if vitals.pss
          @private = vitals.private
          spend(vitals.cpu) if vitals.cpu
        end

        # @return [Float] how much more memory it takes now than on average: the saving of another refork, if the next
        #   generation lives as this one has
        def excess = @pss && @covered.positive? ? [@pss - (@area / @covered), 0.0].max : 0.0

        # @return [Float, nil] how much it would have grown since its birth if all workers were as warm as the warmest:
        #   the most that another refork can save; nil: its size at birth is unknown
        def grown = @born && @pss && ([(@pss - @born) / @warmed, 0.0].max * @workers)

        # @return [Float, nil] the saving of another refork while there are no requests
        def copied = [grown, (@private - (@workers * OWN) if @private)].compact.max

        # @return [Float] seconds with hardly any requests
        def silence = @seconds - @heard_at

        # The CPU time of its first requests above that of as many requests in the generation before, or, if that is
        # unknown, above that of its later requests.
        # @param pace [Float, nil] seconds of CPU per request in the generation before
        # @return [Float, nil] nil: it is too young
        def cost(pace)
          pace ||= self.pace
          age, cpu = @ripe_age ? [@ripe_age, @ripe_cpu] : [@young_age, @young_cpu]
          [cpu - (age * pace), LEAST_CPU].max if age && pace
        end

        # @return [Float, nil] seconds of CPU per request, without the first ones
        def pace = pace_since(@ripe_age, @ripe_cpu, RIPE) || pace_since(@young_age, @young_cpu, YOUNG)

        private

        def pace_since(age, cpu, least)
          (@cpu - cpu) / (@age - age) if age && @cpu && @age - age >= least
        end

        # Measurements of clusters of different sizes cannot be compared.
        def begin_memory_anew(workers)
          @workers = workers
          @pss = @born = @covered_to = nil
          @area = @covered = 0.0
        end

        def listen
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
