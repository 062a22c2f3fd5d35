# frozen_string_literal: true

require "pando/cluster/serializable"
require "pando/refork/policy"

module Pando
  module Refork
    class Auto < Policy
      # One generation's life so far: how its memory has grown, and what its beginning has cost. Sizes are bytes of all
      # workers, ages requests of a worker, CPU time is seconds of a worker. Pure arithmetic.
      #
      # Owned by Auto, in the monitor.
      #
      # @api private
      class Cycle
        extend Cluster::Serializable

        # Requests after which the cost of a refork is known, and is known better: page faults, cold caches and
        # compilation are over then.
        YOUNG = 25
        RIPE = 200
        # CPU time that the smallest app's refork takes of a worker: mold, canary, audits and the worker itself.
        LEAST_CPU = 0.025
        # Requests up to which what it takes is what it was born with. Of a generation that was forked from a warm
        # worker the first that is known must do.
        BORN = 5
        # Bytes that a worker has for itself at least, however young.
        OWN = 8 * 1_048_576
        # Of its average rate of requests, what is as good as none.
        SILENT = 0.02

        serialize cold: :flag, age: :number, most: :number, seconds: :number, pss: :number, workers: :integer,
              warmed: :number, born: :number, covered_to: :number, covered: :number, area: :number, heard_at: :number,
              heard_age: :number, cpu: :number, young_age: :number, young_cpu: :number, ripe_age: :number,
              ripe_cpu: :number

        # @return [Float] requests, on average
        attr_reader :age
        # @return [Float] requests of the worker that has served most: it is the next mold's source
        attr_reader :most
        # @return [Float] since it serves in all slots
        attr_reader :seconds
        # @return [Integer, Float, nil] bytes
        attr_reader :pss
        # @return [Integer]
        attr_reader :workers
        # @return [Float, nil]
        attr_reader :cpu

        # @param cold [Boolean] whether its mold booted from cold
        def initialize(cold: true)
          @cold = cold
          @age = @most = @seconds = @area = @covered = @heard_at = @heard_age = 0.0
          @workers = 0
        end

        # @param vitals [Cluster::Vitals]
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

        # @return [Float] by how much it takes more now than it took on average: what another refork saves, if the next
        #   generation lives as this one has
        def excess = @pss && @covered.positive? ? [@pss - (@area / @covered), 0.0].max : 0.0

        # @return [Float, nil] by how much it has grown since its birth, if all workers were as warm as the warmest is:
        #   what another refork saves at most; nil: nobody has seen its birth
        def grown = @born && @pss && ([(@pss - @born) / @warmed, 0.0].max * @workers)

        # @return [Float, nil] what another refork saves while nobody asks for anything
        def copied = [grown, (@private - (@workers * OWN) if @private)].compact.max

        # @return [Float] seconds for which there have been hardly any requests
        def silence = @seconds - @heard_at

        # What its beginning has taken above what as many requests took in the generation before, or, where that is not
        # known, what they take later.
        # @param pace [Float, nil] seconds of CPU that a request took in the generation before
        # @return [Float, nil] it is too young
        def cost(pace)
          pace ||= self.pace
          age, cpu = @ripe_age ? [@ripe_age, @ripe_cpu] : [@young_age, @young_cpu]
          [cpu - (age * pace), LEAST_CPU].max if age && pace
        end

        # @return [Float, nil] seconds of CPU that a request takes, once the first ones are over
        def pace = between(@ripe_age, @ripe_cpu, RIPE) || between(@young_age, @young_cpu, YOUNG)

        private

        def between(age, cpu, least)
          (@cpu - cpu) / (@age - age) if age && @cpu && @age - age >= least
        end

        # A cluster of another size is another cluster.
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
