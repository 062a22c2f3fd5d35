# frozen_string_literal: true

require "pando/cluster/canary/curve"
require "pando/mebibytes"
require "pando/sys/memory"

module Pando
  module Cluster
    module Canary
      # Whether a new worker has taken much more memory than the old ones had at its age: they took no more than a page
      # for each page fault. Its own faults, which cost next to nothing to read, say whether it is worth measuring.
      #
      # What is measured is by how much it has outgrown its mold, not what is private. The first full collection writes
      # to most of the heap: that becomes private at once, in whichever worker it comes to first. But all of it was the
      # mold's before, so such a worker is no bigger. One that leaks is.
      #
      # @api private
      class MemoryCheck
        include Mebibytes

        # How many times as many page faults it may have, and bytes more.
        TIMES = 1.5
        MORE = 8 * (1024**2)
        # Requests after which faults are counted.
        AGES = Array.new(Curve::BANDS) { |step| 1 << step }.freeze

        # @param roster [#molds]
        # @param source [#anonymous]
        def initialize(roster, source = Sys::Memory)
          @roster = roster
          @source = source
        end

        # @param worker [Child]
        # @param before [Curve]
        # @return [String, nil] what is wrong
        def complaint(worker, before)
          faults, most, age = worker.row.faults.zip(before.faults, AGES).reverse.find { |three| three.none?(&:zero?) }
          return unless faults && bytes(faults) > allowed(bytes(most), worker.row.prefaulted.first)

          requests = [worker.requests, age].max
          expected = bytes(most) * requests / age # at most: it is in the first ones that most is taken
          size = growth(worker)
          return unless size && size > expected + MORE

          "it has grown by #{mebibytes(size)} in #{requests} requests, those before by at most #{mebibytes(expected)}"
        end

        private

        def bytes(faults) = faults * Sys::Memory::PAGE

        # @param given [Integer] bytes that it was given at its start, as it would have taken them later
        def allowed(size, given) = (size * TIMES) + MORE + given

        # @return [Integer, nil] bytes; nil: one of the two is gone
        def growth(worker)
          mold = @roster.molds.find { |one| one.generation == worker.generation } or return
          sizes = [worker, mold].map { |process| @source.anonymous(process.pid) }
          sizes.inject(:-) if sizes.all?
        end
      end
    end
  end
end
