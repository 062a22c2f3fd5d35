# frozen_string_literal: true

module Bench
  # A server's processes according to /proc: the started one and all its descendants.
  class ProcessTree
    attr_reader :root

    # @param root [Integer] pid of the process that was started
    def initialize(root)
      @root = root
    end

    # @return [Array<Integer>] pids, the root first; empty if the root has ended
    def pids
      parents = living
      children = parents.keys.group_by { |pid| parents[pid] }
      found = parents.key?(root) ? [root] : []
      found.each { |pid| found.concat(children.fetch(pid, [])) }
    end

    # @return [Hash{Integer => String}] the title of each process
    def titles
      pids.to_h { |pid| [pid, title(pid)] }
    end

    private

    # The parent's pid by pid, for every process that is not a zombie.
    def living
      Dir.each_child("/proc").grep(/\A\d+\z/).filter_map { |pid| parent(pid.to_i) }.to_h
    end

    # The name in parentheses may contain anything, so count from its end (proc(5), /proc/pid/stat).
    def parent(pid)
      state, parent = File.read("/proc/#{pid}/stat").rpartition(") ").last.split
      [pid, parent.to_i] unless state == "Z"
    rescue Errno::ENOENT, Errno::ESRCH
      nil
    end

    def title(pid)
      File.binread("/proc/#{pid}/cmdline").tr("\0", " ").strip
    rescue Errno::ENOENT, Errno::ESRCH
      ""
    end
  end
end
