# frozen_string_literal: true

module Pando
  module Sys
    # What the kernel's scheduler tells of other processes.
    module Scheduler
      # How long its main thread was ready to run and waited for a CPU: the second field of /proc/PID/schedstat
      # (sched-stats.rst of Linux).
      #
      # @param pid [Integer]
      # @return [Integer, nil] microseconds since its start; nil: it has ended, or the kernel keeps no account
      def self.run_delay(pid)
        File.read("/proc/#{pid}/schedstat").split[1]&.to_i&.div(1000)
      rescue SystemCallError
        nil
      end
    end
  end
end
