# frozen_string_literal: true

module Bench
  # The memory of a server at one moment, from the kernel's sums (smaps_rollup in proc(5)). PSS counts a page that n
  # processes share as 1/n of a page in each, so the sum over all processes counts it once. USS is the memory that only
  # one process has.
  #
  # @!attribute pss [Integer] bytes, of the whole tree
  # @!attribute uss [Integer] bytes, of the whole tree
  # @!attribute worker [Integer] bytes, the PSS of the median worker
  # @!attribute worker_uss [Integer] bytes, of the same worker
  # @!attribute worker_rss [Integer] bytes, of the same worker, shared or not, as in ps(1)
  # @!attribute processes [Integer] number of processes in the tree
  Memory = Struct.new(:pss, :uss, :worker, :worker_uss, :worker_rss, :processes, keyword_init: true) do
    # @param tree [Array<Integer>] pids of all processes of the server
    # @param workers [Array<Integer>] pids of those that serve
    def self.of(tree, workers)
      read = tree.to_h { |pid| [pid, rollup(pid)] }.compact
      served = read.slice(*workers).values
      new(pss: read.values.sum { |sums| sums["Pss"] }, uss: read.values.sum { |sums| own(sums) },
          worker: middle(served) { |sums| sums["Pss"] }, worker_uss: middle(served) { |sums| own(sums) },
          worker_rss: middle(served) { |sums| sums["Rss"] }, processes: read.size)
    end

    def self.own(sums) = sums["Private_Clean"] + sums["Private_Dirty"]
    def self.middle(served, &) = served.map(&).sort[served.size / 2]

    def self.rollup(pid)
      File.read("/proc/#{pid}/smaps_rollup").scan(/^(\w+): +(\d+) kB$/).to_h { |name, kib| [name, kib.to_i * 1024] }
    rescue Errno::ENOENT, Errno::ESRCH
      nil # the process has just ended
    end
    private_class_method :rollup, :own, :middle
  end
end
