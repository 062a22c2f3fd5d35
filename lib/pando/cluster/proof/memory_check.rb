# frozen_string_literal: true

require "pando/mebibytes"
require "pando/sys/memory"

module Pando
  module Cluster
    module Proof
      # Whether a new worker has much more memory of its own than the old ones had at its age: they had no more than a
      # page for each page fault. Its own faults, which cost next to nothing to read, say whether it is worth measuring.
      #
      # @api private
      class MemoryCheck
        include Mebibytes

        # How many times as much it may have, and how many bytes more.
        TIMES = 1.5
        MORE = 8 * (1024**2)

        # @param source [#usage]
        def initialize(source = Sys::Memory)
          @source = source
        end

        # @param worker [Child]
        # @param before [Curve]
        # @return [String, nil] what is wrong
        def complaint(worker, before)
          faults, most = worker.row.faults.zip(before.faults).reverse.find { |pair| pair.none?(&:zero?) }
          given = worker.row.prefaulted.first
          return unless faults && bytes(faults) > allowed(most, given)

          size = @source.usage(worker.pid)&.private
          return unless size && size > allowed(most, given)

          "its private memory is #{mebibytes(size)} after #{worker.requests} requests, that of those before was at " \
            "most #{mebibytes(bytes(most))}"
        end

        private

        def bytes(faults) = faults * Sys::Memory::PAGE

        # @param given [Integer] bytes that it was given at its start, as it would have taken them later
        def allowed(most, given) = (bytes(most) * TIMES) + MORE + given
      end
    end
  end
end
