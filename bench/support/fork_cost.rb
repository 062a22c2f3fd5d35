# frozen_string_literal: true

require "support/native"

module Bench
  # What a forked process pays on this machine for the memory that it inherits (bench/native/forkcost.c). Where a
  # hypervisor keeps page tables of its own, it is twenty to a hundred times as much as on bare metal, and all figures
  # that contain the first requests of forked workers must be read with that in mind.
  #
  # @!attribute read [Float] microseconds of CPU time for the first read of an inherited page
  # @!attribute write [Float] the same for the first write
  ForkCost = Struct.new(:read, :write) do
    # The median of five processes by the cost of a write.
    # @return [ForkCost]
    def self.measure
      program = Native.program("forkcost")
      costs = Array.new(5) { new(*IO.popen([program], &:read).split.map { |figure| Float(figure) }) }
      costs.sort_by(&:write)[2]
    end

    def to_s
      format("A forked process took %<read>.2f microseconds for its first read of an inherited page, and %<write>.2f " \
             "for its first write (on bare metal: below 0.1, and about 1).", read: read, write: write)
    end
  end
end
