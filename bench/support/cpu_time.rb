# frozen_string_literal: true

require "etc"
require "support/process_tree"

module Bench
  # The CPU time of a server so far, user and system, of all its processes and threads together. For a running process
  # it is the kernel's own sum in nanoseconds. For its children that have ended, it comes from /proc/PID/stat (cutime
  # and cstime in proc(5)), which counts ticks, usually of 10 ms.
  module CPUTime
    TICK = 1.0 / Etc.sysconf(Etc::SC_CLK_TCK)
    CHILDREN = (13..14) # positions among the fields after the name
    CLOCK_SCHED = 2

    # @param pids [Array<Integer>]
    # @return [Float] seconds
    def self.of(pids) = pids.sum { |pid| living(pid) + ended_children(pid) }

    # Computes the number of the process's clock from its pid: clock_getcpuclockid(3).
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
