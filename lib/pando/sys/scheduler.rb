# frozen_string_literal: true

require "pando/sys/process_stat"

module Pando
  module Sys
    # What the kernel's scheduler knows about other processes.
    module Scheduler
      # CPUCLOCK_SCHED, and the position of the pid in the number of a process's clock (clock_getcpuclockid(3); Linux'
      # include/linux/posix-timers.h).
      SCHED = 2
      PID_SHIFT = 3
      private_constant :SCHED, :PID_SHIFT

      # The CPU time of a process, all threads together, in user and kernel mode. It is exact to the nanosecond, where
      # /proc/PID/stat has hundredths of a second, and takes a microsecond to read.
      #
      # @return [Float, nil] seconds; nil: it has ended
      def self.cpu_time(pid)
        Process.clock_gettime((~pid << PID_SHIFT) | SCHED)
      rescue SystemCallError
        nil
      end

      # How long its main thread was ready to run and waited for a CPU: the second field of /proc/PID/schedstat (Linux'
      # sched-stats.rst).
      #
      # @return [Integer, nil] microseconds since its start; nil: it has ended, or the kernel does not count this
      def self.run_delay(pid) = times(pid)&.fetch(1)&.div(1000)

      # How long its main thread has run, or was ready to run and waited for a CPU.
      #
      # @return [Float, nil] seconds since its start; nil: it has ended, or the kernel does not count this
      def self.effort(pid) = times(pid)&.then { |ran, waited| (ran + waited) / 1e9 }

      # @return [Boolean] whether its main thread waits for a disk or a file server and cannot be interrupted: state D
      #   in proc(5)
      def self.waits_for_disk?(pid) = ProcessStat.read(pid)&.state == "D"

      # The first two fields of /proc/PID/schedstat, in nanoseconds.
      def self.times(pid)
        times = File.read("/proc/#{pid}/schedstat").split.first(2).map(&:to_i)
        times if times.size == 2
      rescue SystemCallError
        nil
      end
      private_class_method :times
    end
  end
end
