# frozen_string_literal: true

require "pando/sys/mapping"
require "pando/sys/memory"
require "pando/sys/process_stat"
require "pando/yjit"

module Pando
  module Measure
    # A server's processes as /proc shows them: the root process and all its descendants. A process whose parent has
    # ended becomes a child of its nearest subreaper: Pando's monitor, or the process of the command.
    class ProcessTree
      # The memory and CPU time of the processes at a moment, and how many workers and processes there are. `pss`: bytes
      # of all processes (a page that n of them share counts as 1/n in each); `own`: private bytes of a worker, on
      # average; `cpu`: seconds so far, user and system, including processes that have ended.
      Reading = Struct.new(:pss, :own, :workers, :processes, :cpu, keyword_init: true)

      Entry = Struct.new(:pid, :parent, :cpu)

      # @param worker [Regexp] that matches the titles of workers
      def initialize(root, worker)
        @root = root
        @worker = worker
      end

      # @return [Array<Integer>] the root first; empty when the root is gone
      def pids = entries.map(&:pid)

      def workers = pids.select { |pid| title(pid).match?(@worker) }

      def read
        found = entries
        usages = found.to_h { |entry| [entry.pid, Sys::Memory.usage(entry.pid)] }.compact
        serving = usages.select { |pid, _| title(pid).match?(@worker) }.values
        Reading.new(pss: usages.values.sum(&:pss), own: serving.sum(&:private).fdiv([serving.size, 1].max),
                    workers: serving.size, processes: usages.size, cpu: found.sum(&:cpu))
      end

      # @return [String, nil] the name of the malloc that replaces the C library's
      def allocator = maps[/lib(jemalloc|tcmalloc|mimalloc)/, 1]

      # Ruby names the memory of its compiler only on some kernels. Without a name, it belongs to the compiler that the
      # command's Ruby can have.
      # @return [String, nil] the name of the JIT that a worker runs with
      def jit
        text = maps
        named = text[/\[anon:.*([yz]jit)/i, 1]
        return named.upcase if named

        (YJIT.displaced? ? "ZJIT" : "YJIT") if Sys::CodeRegion.all(text).any?
      end

      private

      # @return [String] of a worker; empty if there is none any more
      def maps
        File.binread("/proc/#{workers.first || @root}/maps")
      rescue SystemCallError
        ""
      end

      def entries
        all = Dir.each_child("/proc").grep(/\A\d+\z/).filter_map { |pid| entry(pid.to_i) }
        children = all.group_by(&:parent)
        found = all.select { |entry| entry.pid == @root }
        found.each { |entry| found.concat(children.fetch(entry.pid, [])) }
      end

      # @return [Entry, nil] nil: the process has just ended
      def entry(pid) = Sys::ProcessStat.read(pid)&.then { |stat| Entry.new(pid, stat.parent, stat.tree_cpu_time) }

      def title(pid)
        File.binread("/proc/#{pid}/cmdline").tr("\0", " ").strip
      rescue SystemCallError
        ""
      end
    end
  end
end
