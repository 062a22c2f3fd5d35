# frozen_string_literal: true

require "pando/refork/lineage"

module Pando
  module Cluster
    class Generations
      # Measures each new mold for a Refork::Lineage: its memory, and the requests that its ancestors have served. It
      # counts anonymous memory, shared or not: a new mold has all that its source had, and the kernel keeps that count
      # for free.
      #
      # Owned by ColdBoots, in the monitor.
      class Ancestry
        include Brief
        extend Serializable

        # A mold whose generation does not serve yet, see Refork::Lineage#add.
        NewMold = Struct.new(:number, :ancestor, :requests, :bytes, :boot, :cpu, :served)

        serialize lineage: Refork::Lineage, cpu: :number, served: :integer

        # @return [Refork::Lineage] since the last cold boot
        attr_reader :lineage

        def initialize(roster, gauge, clock)
          @roster = roster
          @gauge = gauge
          @clock = clock
          begin_line(nil)
        end

        # The generation's mold is ready. One that has booted in the place of a dead mold, whose workers still serve,
        # does not count. Nor does one whose source has ended meanwhile: that worker's CPU time and requests would be
        # missing.
        def born(generation)
          source = generation.source
          @new_mold = nil
          return if source ? source.gone? : generation.heal? && @roster.ready_workers.any?

          mold = generation.mold
          bytes = @gauge.anonymous(mold.pid) or return
          @new_mold = NewMold.new(generation.number, source&.generation, mold.inherited_requests, bytes,
                                  @clock.cpu_time(mold.pid), *spent)
        end

        def established(generation)
          mold = @new_mold
          return unless mold&.number == generation.number

          mold.ancestor ? @former = nil : begin_anew(mold)
          @lineage.add(mold.number, mold.ancestor, mold.requests, mold.bytes, cpu: mold.cpu, served: mold.served)
          @cpu, @served = mold.to_a.last(2) if generation.successor? # its predecessor's workers leave
        end

        # Goes back to an earlier generation if one that served in all slots was discarded.
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

        def begin_anew(mold)
          @former = [@lineage, @cpu, @served]
          begin_line(mold.boot)
          mold.cpu = @cpu
          mold.served = @served
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
