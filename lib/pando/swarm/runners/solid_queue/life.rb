# frozen_string_literal: true

module Pando
  module Swarm
    module Runners
      class SolidQueue
        # Tells a process that is surely dead from one that may live. Each leaves its mark where others find it: the
        # boot of its machine, the namespace that its pid belongs to, and when it began, for pids are used again.
        #
        # @api private
        module Life
          BOOT_ID = "/proc/sys/kernel/random/boot_id"
          DEAD_STATES = %w[Z X].freeze
          private_constant :BOOT_ID, :DEAD_STATES

          class << self
            # @return [String] of this process
            def mark = "#{world} #{began("self").last}"

            # @param pid [Integer] @param mark [String, nil] what it has left
            # @return [Boolean] false also where nobody here can tell
            def over?(pid, mark)
              where, _, began = mark.to_s.rpartition(" ")
              where == world && gone?(pid, began)
            rescue SystemCallError
              false
            end

            private

            def world = "#{File.read(BOOT_ID).chomp} #{File.readlink("/proc/self/ns/pid")}"

            # A process of another user may be hidden in /proc, but is there to be signalled.
            def gone?(pid, began)
              Process.kill(0, pid)
              state, now = began(pid)
              DEAD_STATES.include?(state) || now != began
            rescue Errno::ESRCH
              true
            rescue Errno::EPERM
              false
            end

            # proc_pid_stat(5): its state, and when it began, in ticks since the boot.
            def began(pid) = File.read("/proc/#{pid}/stat").rpartition(")").last.split.values_at(0, 19)
          end
        end
      end
    end
  end
end
