# frozen_string_literal: true

require "etc"
require "support/process_tree"

module Bench
  # The CPU time of a server so far, user and system, all of its processes and threads together. For a living
  # process it is the kernel's own sum in nanoseconds; for its children that have ended what /proc/PID/stat says
  # (cutime and cstime in proc(5)), which counts ticks, usually of 10 ms.
  module CPUTime
    TICK = 1.0 / Etc.sysconf(Etc::SC_CLK_TCK)
    CHILDREN = (13..14) # of the fields after the name
    CLOCK_SCHED = 2

    # @param pids [Array<Integer>]
    # @return [Float] seconds
    def self.of(pids) = pids.sum { |pid| living(pid) + ended_children(pid) }

    # The clock's number is made of the pid: clock_getcpuclockid(3).
    def self.living(pid)
      Process.clock_gettime((~pid << 3) | CLOCK_SCHED)
    rescue Errno::EINVAL, Errno::ESRCH
      0.0 # it has just ended
    end

    def self.ended_children(pid)
      File.read("/proc/#{pid}/stat").rpartition(") ").last.split[CHILDREN].sum(&:to_i) * TICK
    rescue Errno::ENOENT, Errno::ESRCH
      0.0
    end
    private_class_method :ended_children
  end
end
