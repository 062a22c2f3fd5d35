# frozen_string_literal: true

require "pando/code_bound"
require "pando/sys/special_pages"

module Pando
  module CLI
    # What `pando status` says of all that has to do with what the processes share: the allocator, huge and merged
    # pages, compiled code, full collections.
    #
    # For a StatusReport, which has the records.
    #
    # @api private
    module SharingLines
      private

      def sharing = [allocator, *pages, compiler, collections].compact

      # It is loaded into molds, and inherited; read here like their memory.
      def allocator
        pid = [*all("mold"), *all("worker")].first&.fetch("pid", nil) or return
        path = File.read("/proc/#{pid}/maps")[%r{/\S*libjemalloc\S*$}]
        "allocator: #{printable(path)}" if path
      rescue SystemCallError
        nil
      end

      # Where the kernel has given the application huge pages, or merged pages of it.
      def pages
        seen = children.filter_map { |_, pairs| Sys::SpecialPages.of(pairs["pid"]) if pairs["pid"] }
        huge, merged, gain = %i[huge merged gain].map { |name| seen.sum { |one| one[name].to_i } }
        [("huge pages: #{mebibytes(huge)}" if huge.positive?),
         ("merged pages: #{mebibytes(merged)}, saving #{mebibytes(gain)}" if merged.positive?)].compact
      end

      # Of the worker that has compiled most.
      def compiler
        worker = all("worker").max_by { |pairs| pairs["code"].to_i } or return
        bound = CodeBound.of(*worker.values_at("pid", "code"), worker["requests"].to_i)
        "YJIT: #{bound}" if bound
      end

      # Of the workers that live.
      def collections
        workers = all("worker")
        made = workers.sum { |pairs| pairs["full"].to_i }
        due = workers.count { |pairs| pairs["major_gc_due"] }
        wait = "; #{counted(due, "worker")} to be replaced in place of one" if due.positive?
        "full collections: #{made} in #{counted(workers.size, "worker")}#{wait}" if made.positive? || due.positive?
      end
    end
  end
end
