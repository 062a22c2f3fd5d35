# frozen_string_literal: true

require "pando/sys/memory"

module Pando
  module Cluster
    # Whether the kernel has killed somebody for want of memory since it was asked
    # last. It does not say whom: its victims die of SIGKILL as others do.
    #
    # Owned by the monitor.
    #
    # @api private
    class OomWatch
      MACHINE = "/proc/vmstat"
      # Seconds: of several victims at once we hear one by one.
      MEMORY = 2.0

      # @param paths [Array<String>] files with a line "oom_kill N"; the first one that has it counts
      def initialize(paths = [OomWatch.of_cgroup, MACHINE])
        @path = paths.compact.find { |path| count(path) }
        @seen = read
      end

      # @param child [Child] whose ending is known
      # @return [Boolean] whether it is likely that the kernel has killed this one
      def victim?(child)
        ending = child.ending
        !!ending&.killed? && ending.number == Signal.list["KILL"] && !child.condemned? && struck?
      end

      # @return [Boolean]
      def struck?
        seen = read
        @struck_at = Sys.now unless seen == @seen
        @seen = seen
        !@struck_at.nil? && Sys.now - @struck_at < MEMORY
      end

      # cgroup v2: memory.events counts what happened in this group and below.
      # @return [String, nil]
      def self.of_cgroup = Sys::Memory.group_file("memory.events")

      private

      def read = @path && count(@path)

      def count(path)
        File.read(path)[/^oom_kill (\d+)$/, 1]&.to_i
      rescue SystemCallError
        nil
      end
    end
  end
end
