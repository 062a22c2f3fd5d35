# frozen_string_literal: true

require "pando/cluster/brief"
require "pando/cluster/serializable"
require "pando/refork/lineage"

module Pando
  module Cluster
    class Generations
      # Looks at each mold when it is born: its memory, and by what its ancestors have earned it. Memory is what no file
      # is behind, whoever shares it: a new mold has all that the worker had, and nothing is measured page by page.
      #
      # Owned by ColdBoots, in the monitor.
      #
      # @api private
      class Ancestry
        include Brief
        extend Serializable

        # A mold that has not served yet, see Refork::Lineage#add.
        NewWorker = Struct.new(:number, :ancestor, :requests, :bytes, :boot, :cpu, :served)

        serialize lineage: Refork::Lineage, cpu: :number, served: :integer

        # @return [Refork::Lineage] since the last boot from cold
        attr_reader :lineage

        # @param gauge [#anonymous] @param clock [#cpu_time]
        def initialize(roster, gauge, clock)
          @roster = roster
          @gauge = gauge
          @clock = clock
          begin_line(nil)
        end

        # @param generation [Generation] whose mold is ready
        def born(generation)
          source = generation.source
          @newborn = nil
          return if source ? source.gone? : beside_others?(generation)

          bytes = @gauge.anonymous(generation.mold.pid) or return
          line = source ? [source.generation, source.requests] : [nil, 0]
          @newborn = NewWorker.new(generation.number, *line, bytes, @clock.cpu_time(generation.mold.pid), *spent)
        end

        # @param generation [Generation] that serves in all slots
        def established(generation)
          one = @newborn
          return unless one&.number == generation.number

          one.ancestor ? @former = nil : begin_anew(one)
          @lineage.add(one.number, one.ancestor, one.requests, one.bytes, cpu: one.cpu, served: one.served)
          pass_on(one) if generation.successor?
        end

        # A generation that had served in all slots may have come to nothing.
        # @param current [Generation, nil]
        def follow(current)
          return unless current && @lineage.number.to_i > current.number

          @former ? (@lineage, @cpu, @served = @former) : @lineage.forget_after(current.number)
          @former = nil
        end

        # @return [Array(Float, Integer)] seconds of CPU and requests of all workers in this line
        def spent
          workers = @roster.ready_workers
          [@cpu + workers.sum { |worker| @clock.cpu_time(worker.pid) || 0.0 }, @served + workers.sum(&:requests)]
        end

        private

        # It takes the place of a mold whose workers serve on.
        def beside_others?(generation) = generation.heal? && @roster.ready_workers.any?

        def begin_anew(newborn)
          @former = [@lineage, @cpu, @served]
          begin_line(newborn.boot)
          newborn.cpu = @cpu
          newborn.served = @served
        end

        # The workers that have served by then leave.
        def pass_on(newborn)
          @cpu = newborn.cpu
          @served = newborn.served
        end

        def begin_line(boot)
          @lineage = Refork::Lineage.new(boot)
          @cpu = 0.0
          @served = 0
        end
      end
    end
  end
end
