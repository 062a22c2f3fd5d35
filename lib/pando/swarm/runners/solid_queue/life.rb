# frozen_string_literal: true

module Pando
  module Swarm
    module Runners
      class SolidQueue
        # Tells a process that is certainly dead from one that may be alive. Each process leaves a mark where others
        # find it: the boot of its machine, the namespace of its pid, and its start time, because the kernel reuses
        # pids.
        #
        # @api private
        module Life
          BOOT_ID = "/proc/sys/kernel/random/boot_id"
          DEAD_STATES = %w[Z X].freeze
          private_constant :BOOT_ID, :DEAD_STATES

          class << self
            # @return [String] the mark of this process
            def mark = "#{world} #{began("self").last}"

            # @param pid [Integer] @param mark [String, nil] the mark that it left
            # @return [Boolean] false also if this process cannot tell
            def over?(pid, mark)
              where, _, began = mark.to_s.rpartition(" ")
              where == world && gone?(pid, began)
            rescue SystemCallError
              false
            end

            private

            def world = "#{File.read(BOOT_ID).chomp} #{File.readlink("/proc/self/ns/pid")}"

            # /proc may hide a process of another user, but a signal still finds it.
            def gone?(pid, began)
              Process.kill(0, pid)
              state, now = began(pid)
              DEAD_STATES.include?(state) || now != began
            rescue Errno::ESRCH
              true
            rescue Errno::EPERM
              false
            end

            # proc_pid_stat(5): the state, and the start time in ticks since the boot.
            def began(pid) = File.read("/proc/#{pid}/stat").rpartition(")").last.split.values_at(0, 19)
          end
        end
      end
    end
  end
end
