# frozen_string_literal: true

module Pando
  module Cluster
    # Writes into a worker's row what has become of it: collections, JIT code, page faults, CPU time (Sys::Sample).
    # At its 1st, 2nd, 4th ... job while it is young, later at most four times a second, and when it falls idle.
    #
    # One for each worker, in its process.
    #
    # @api private
    class Sampler
      # @param row [Sys::Row]
      # @param payload [#code_bytes]
      def initialize(row, payload)
        @row = row
        @payload = payload
        @minor = minor
        @major = major
        @jobs = 0
      end

      # Between two jobs.
      def take
        @jobs = @row.requests
        @row.take_sample(@payload.code_bytes, minor - @minor, major - @major)
      end

      # What was done since then may be all for a while.
      def catch_up
        take unless @row.requests == @jobs
      end

      private

      def minor = GC.stat(:minor_gc_count)
      def major = GC.stat(:major_gc_count)
    end
  end
end
