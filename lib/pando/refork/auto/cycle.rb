# frozen_string_literal: true

require "pando/cluster/carried"
require "pando/refork/policy"

module Pando
  module Refork
    class Auto < Policy
      # One generation's life so far: how memory has grown with the requests, and what its beginning has cost.
      # Sizes are bytes a worker, ages and costs requests a worker. Pure arithmetic.
      #
      # Owned by Auto, in the monitor.
      #
      # @api private
      class Cycle
        extend Cluster::Carried

        # Requests in which the price of a refork is paid: page faults, cold caches, compilation.
        YOUNG = 400
        # Requests after those, from which the steady state is known.
        STEADY = 400
        # No refork is cheaper, whatever was measured: requests, and seconds of CPU of a worker, which its fork, its
        # hooks and its part of the mold take alone.
        LEAST_COST = 20.0
        LEAST_CPU = 0.005
        # Requests up to which what it takes is what it was born with.
        BORN = 5

        carry age: :number, most: :number, seconds: :number, pss: :number, workers: :integer,
              warmed: :number, born: :number, covered_to: :number, covered: :number, area: :number,
              cpu_age: :number, cpu: :number,
              young_age: :number, young_cpu: :number, mark_age: :number, mark_size: :number, growth: :number

        # @return [Float] requests, on average
        attr_reader :age
        # @return [Float] requests of the worker that has served most: it is the next mold's source
        attr_reader :most
        # @return [Float] since it serves in all slots
        attr_reader :seconds
        # @return [Integer, Float, nil] bytes, of all together
        attr_reader :pss
        # @return [Float, nil] seconds of CPU that a worker has had
        attr_reader :cpu

        def initialize
          @age = @most = @seconds = @area = @covered = 0.0
          @workers = 0
        end

        # @param vitals [Cluster::Vitals]
        def add(vitals)
          @seconds = vitals.seconds
          begin_memory_anew(vitals.workers) unless vitals.workers == @workers
          @age = vitals.age
          @most = vitals.most.to_f
          @warmed = (vitals.warmed || vitals.workers).to_f
          grow(vitals.pss) if vitals.pss
          spend(vitals.cpu) if vitals.cpu
        end

        # @return [Float, nil]
        def size = @pss && (@pss / @workers.to_f)

        # @return [Float, nil] bytes by which a worker that is warm has grown since its birth, as far as those who have
        #   hardly served do not hide it; nil: nobody has seen its birth
        def grown = @born && @pss && [(@pss - @born) / @warmed, 0.0].max

        # @return [Float] the share of its present memory that it has not had on average: what another refork saves,
        #   if the next generation is like this one
        def saving
          return 0.0 unless @pss && @covered.positive? && @pss.positive?

          [1 - (@area / @covered / @pss), 0.0].max
        end

        # @return [Boolean] whether that is enough
        def worth? = !size.nil? && Auto.worth?(saving, size)

        # What its beginning has taken above its own steady state, as so many requests of the latter.
        # @return [Float, nil] it is too young
        def cost
          return unless @young_age && @cpu_age - @young_age >= STEADY

          each = (@cpu - @young_cpu) / (@cpu_age - @young_age)
          each.positive? ? [(@young_cpu / each) - @young_age, LEAST_COST, LEAST_CPU / each].max : nil
        end

        # @return [Float, nil] the share of its present memory by which it has grown while its age doubled last
        attr_reader :growth

        # How it has grown so far no longer matters.
        def watch_growth_anew
          @growth = nil
          @mark_age = @age
          @mark_size = size
        end

        private

        # A cluster of another size is another cluster.
        def begin_memory_anew(workers)
          @workers = workers
          @pss = @born = @mark_age = @mark_size = @growth = nil
          @area = @covered = 0.0
        end

        def grow(pss)
          @born ||= pss if @age <= BORN
          if @pss && @age > @covered_to
            @area += (@age - @covered_to) * (@pss + pss) / 2.0
            @covered += @age - @covered_to
          end
          @covered_to = @age
          @pss = pss
          mark
        end

        def mark
          return (watch_growth_anew if @age >= YOUNG) unless @mark_age
          return if @age < @mark_age * 2

          growth = [1 - (@mark_size / size), 0.0].max
          watch_growth_anew
          @growth = growth
        end

        def spend(cpu)
          @young_age, @young_cpu = @age, cpu if @young_age.nil? && @age >= YOUNG # rubocop:disable Style/ParallelAssignment
          @cpu_age = @age
          @cpu = cpu
        end
      end
    end
  end
end
