# frozen_string_literal: true

require "pando/code_bound"

module Pando
  module CLI
    # The lines of `pando status` about shared memory: the allocator, compiled code, major GCs.
    #
    # Part of {StatusReport}, which has the records.
    #
    # @api private
    module SharingLines
      private

      def sharing = [allocator, compiler, collections].compact

      # Molds load it and workers inherit it, so it shows in the memory maps of either.
      def allocator
        pid = [*all("mold"), *all("worker")].first&.fetch("pid", nil) or return
        path = File.read("/proc/#{pid}/maps")[%r{/\S*libjemalloc\S*$}]
        "allocator: #{printable(path)}" if path
      rescue SystemCallError
        nil
      end

      # For the worker that has compiled most.
      def compiler
        worker = all("worker").max_by { |pairs| pairs["code"].to_i } or return
        bound = CodeBound.of(*worker.values_at("pid", "code"), worker["requests"].to_i)
        "YJIT: #{bound}" if bound
      end

      # For the current workers.
      def collections
        workers = all("worker")
        made = workers.sum { |pairs| pairs["full"].to_i }
        due = workers.count { |pairs| pairs["major_gc_due"] }
        wait = "; #{counted(due, "worker")} to be replaced instead of running one" if due.positive?
        "major GCs: #{made} in #{counted(workers.size, "worker")}#{wait}" if made.positive? || due.positive?
      end
    end
  end
end
