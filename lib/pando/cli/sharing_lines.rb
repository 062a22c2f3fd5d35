# frozen_string_literal: true

require "pando/code_bound"
require "pando/sys/special_pages"

module Pando
  module CLI
    # The lines of `pando status` about shared memory: the allocator, huge and merged pages, compiled code, major GCs.
    #
    # Part of {StatusReport}, which has the records.
    #
    # @api private
    module SharingLines
      private

      def sharing = [allocator, *pages, compiler, collections].compact

      # Molds load it and workers inherit it, so it shows in the memory maps of either.
      def allocator
        pid = [*all("mold"), *all("worker")].first&.fetch("pid", nil) or return
        path = File.read("/proc/#{pid}/maps")[%r{/\S*libjemalloc\S*$}]
        "allocator: #{printable(path)}" if path
      rescue SystemCallError
        nil
      end

      # Only if the kernel has given the application huge pages, or merged pages of it.
      def pages
        seen = children.filter_map { |_, pairs| Sys::SpecialPages.of(pairs["pid"]) if pairs["pid"] }
        huge, merged, gain = %i[huge merged gain].map { |name| seen.sum { |one| one[name].to_i } }
        [("huge pages: #{mebibytes(huge)}" if huge.positive?),
         ("merged pages: #{mebibytes(merged)}, saving #{mebibytes(gain)}" if merged.positive?)].compact
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
