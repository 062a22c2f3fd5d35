# frozen_string_literal: true

require "support/cpu_time"
require "support/process_tree"

module Bench
  module Lab
    # A control group (version 2) for the processes of one server: it lists them, whatever process is their parent by
    # now, and counts the CPU time of all of them, running or ended, to the microsecond. The kernel counts that in every
    # group, without any controller.
    class Group
      PREFIX = ["sh", "-c", 'echo $$ > "$0" && exec "$@"'].freeze

      # @return [Group, nil] nil: we may not create one
      def self.make
        mount = File.readlines("/proc/mounts").map(&:split).find { |_, _, type| type == "cgroup2" }
        own = File.read("/proc/self/cgroup")[/^0::(.*)$/, 1]
        return unless mount && own

        folder = File.join(mount[1], own, "pando-lab-#{Process.pid}-#{rand(1_000_000)}")
        Dir.mkdir(folder)
        new(folder)
      rescue SystemCallError
        nil
      end

      def initialize(folder)
        @folder = folder
      end

      # @return [Array<String>] the beginning of a command line that runs in it
      def prefix = [*PREFIX, File.join(@folder, "cgroup.procs")]

      # @return [Array<Integer>]
      def pids(_root = nil) = File.readlines(File.join(@folder, "cgroup.procs")).map(&:to_i).reject(&:zero?)

      # @return [Float] seconds so far, user and system
      def cpu = File.read(File.join(@folder, "cpu.stat"))[/^usage_usec (\d+)/, 1].to_i / 1e6

      # Kills its remaining processes, then removes the group.
      def release
        50.times do
          pids.each { |pid| kill(pid) }
          return Dir.rmdir(@folder)
        rescue Errno::EBUSY
          sleep 0.1
        end
      end

      private

      def kill(pid)
        Process.kill(:KILL, pid)
      rescue Errno::ESRCH
        # The process has ended.
      end
    end

    # The same without control groups. For a process that has ended, the CPU time when it was last read.
    class Ledger
      def initialize
        @used = {}
      end

      def prefix = []

      def pids(root)
        ProcessTree.new(root).pids.each { |pid| @used[pid] = [@used[pid].to_f, CPUTime.living(pid)].max }
      end

      def cpu = @used.values.sum
      def release; end
    end
  end
end
