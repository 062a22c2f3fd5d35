# frozen_string_literal: true

require "pando/sys/memory"

module Pando
  module Cluster
    module Proof
      # Whether a new worker has much more memory of its own than the old ones had at its age: they had no more than a
      # page for each page fault. Its own faults, which cost next to nothing to read, say whether it is worth measuring.
      #
      # @api private
      class MemoryCheck
        # How many times as much it may have, and how many bytes more.
        TIMES = 1.5
        MORE = 8 * (1024**2)

        # @param source [#usage, #minor_faults]
        def initialize(source = Sys::Memory)
          @source = source
        end

        # @param pid [Integer] of the worker @param age [Integer] requests that it has served
        # @param before [Curve]
        # @return [String, nil] what is wrong
        def complaint(pid, age, before)
          most = before.faults_at(age) * Sys::Memory::PAGE
          return if age.zero? || most.zero?

          allowed = (most * TIMES) + MORE
          return unless (@source.minor_faults(pid) || 0) * Sys::Memory::PAGE > allowed

          size = @source.usage(pid)&.private
          return unless size && size > allowed

          format("its private memory is %.1f MiB after %d requests, that of those before was at most %.1f MiB",
                 size / 1_048_576.0, age, most / 1_048_576.0)
        end
      end
    end
  end
end
