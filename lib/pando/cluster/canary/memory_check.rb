# frozen_string_literal: true

require "pando/cluster/canary/comparison"
require "pando/sys/memory"

module Pando
  module Cluster
    module Canary
      # Whether a new worker has taken much more memory than the old ones had at its age: at most a page for each page
      # fault. Its own faults, which cost little to read, tell whether it is worth measuring.
      #
      # Its growth beyond its mold is measured, not its private memory: the first major collection writes to most of the
      # heap, which becomes private at once, but is no bigger than it was in the mold.
      class MemoryCheck
        include Wording

        # It may have this many times as many page faults, and these bytes more.
        TIMES = 1.5
        MORE = 8 * (1024**2)
        # Requests after which faults are read.
        AGES = Array.new(Curve::BANDS) { |step| 1 << step }.freeze

        def initialize(roster, source = Sys::Memory)
          @roster = roster
          @source = source
        end

        def complaint(worker, before)
          faults, most, age = worker.row.faults.zip(before.faults, AGES).reverse.find { |three| three.none?(&:zero?) }
          return unless faults && bytes(faults) > allowed(bytes(most), worker.row.prefaulted.first)

          requests = [worker.requests, age].max
          expected = bytes(most) * requests / age # at most: the first requests take most
          size = growth(worker)
          return unless size && size > expected + MORE

          "it has grown by #{mebibytes(size)} in #{requests} requests, those before by at most #{mebibytes(expected)}"
        end

        private

        def bytes(faults) = faults * Sys::Memory::PAGE

        # @param given [Integer] bytes that it was given at its start, a page fault for each page
        def allowed(size, given) = (size * TIMES) + MORE + given

        def growth(worker)
          mold = @roster.molds.find { |one| one.generation == worker.generation } or return
          sizes = [worker, mold].map { |process| @source.anonymous(process.pid) }
          sizes.inject(:-) if sizes.all?
        end
      end
    end
  end
end
