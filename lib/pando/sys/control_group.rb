# frozen_string_literal: true

module Pando
  module Sys
    # The control group that this process is in and those around it, as their files tell (cgroup-v2.rst of Linux, and
    # cgroup-v1/memory.rst). Of both versions, also side by side; what a group or a kernel does not tell is nil.
    class ControlGroup
      ROOT = "/sys/fs/cgroup"
      MEMBERSHIP = "/proc/self/cgroup"
      # Where version 2 is mounted: alone, or beside version 1.
      UNIFIED = ["", "unified"].freeze
      # Version 1 writes the largest number of pages where there is no limit.
      BOUNDLESS = 2**60
      # By the file of the limit: that of what is used, and the line of memory.stat that may be taken off.
      USE = { "memory.max" => %w[memory.current inactive_file],
              "memory.limit_in_bytes" => %w[memory.usage_in_bytes total_inactive_file] }.freeze

      # What a group may use and uses, in bytes; without files that nobody has read for a while, which the kernel
      # drops before it kills.
      Memory = Struct.new(:used, :limit) do
        # @return [Float]
        def percent = used * 100.0 / limit
      end

      # @param root [String] @param groups [String] a file as proc(5) describes /proc/PID/cgroup
      def initialize(root: ROOT, groups: MEMBERSHIP)
        @root = root
        @groups = groups
      end

      # @return [Integer, nil] bytes: the least of our group's limit and of those around it
      def memory_limit
        levels("memory", "memory.max", "memory.limit_in_bytes").filter_map { |folder, name| limit(folder, name) }.min
      end

      # @return [Memory, nil] of the fullest of all groups that have a limit
      def memory
        levels("memory", "memory.max", "memory.limit_in_bytes")
          .filter_map { |folder, name| fill(folder, name) }.max_by(&:percent)
      end

      # The share of the last ten seconds in which somebody in the group waited for memory (PSI, psi.rst of Linux).
      # @return [Float, nil] percent
      def memory_pressure
        folder, name = levels(nil, "memory.pressure").first
        read(folder, name)&.slice(/^some avg10=([\d.]+)/, 1)&.to_f if folder
      end

      # @return [String, nil] the file that counts, in a line "oom_kill N", whom of us the kernel killed for memory
      def oom_counter
        folder, name = levels("memory", "memory.events", "memory.oom_control").first
        folder && File.join(folder, name)
      end

      # @return [Rational, nil] CPUs' worth of time that we may have; the least of all groups'
      def cpu_quota
        [*levels(nil, "cpu.max").filter_map { |folder, name| share(*read(folder, name)&.split) },
         *levels("cpu", nil, "cpu.cfs_quota_us").filter_map do |folder, name|
           share(read(folder, name), read(folder, "cpu.cfs_period_us"))
         end].min
      end

      private

      # The folders of our group and of those around it, innermost first, which have the file of their version.
      # Version 2 has a line 0::PATH in /proc/PID/cgroup, version 1 one for each controller.
      def levels(controller, name, old_name = nil)
        unified = path { |number,| number == "0" } if name
        old = path { |_, controllers| controllers.split(",").include?(controller) } if old_name
        [*(UNIFIED.flat_map { |place| upward(File.join(@root, place), unified, name) } if unified),
         *(upward(File.join(@root, controller), old, old_name) if old)]
      end

      # Of the first line that the block wants.
      def path(&block)
        lines = File.readlines(@groups, chomp: true).map { |line| line.split(":", 3) }
        lines.select { |line| line.size == 3 }.find(&block)&.last
      rescue SystemCallError
        nil
      end

      # In a container the path is often one of the host's: then only the root of what we see is there.
      def upward(root, path, name)
        parts = path.split("/").reject { |part| part.empty? || part == ".." }
        folders = parts.size.downto(0).map { |depth| File.join(root, *parts.first(depth)) }
        folders.select { |folder| File.file?(File.join(folder, name)) }.map { |folder| [folder, name] }
      end

      def fill(folder, name)
        limit = limit(folder, name)
        used, inactive = USE.fetch(name)
        used = number(read(folder, used)) if limit&.positive?
        idle = read(folder, "memory.stat")&.slice(/^#{inactive} (\d+)$/, 1).to_i
        Memory.new([used - idle, 0].max, limit) if used.is_a?(Integer)
      end

      def limit(folder, name)
        bytes = number(read(folder, name)) # "max": none
        bytes if bytes && bytes < BOUNDLESS
      end

      def share(time = nil, period = nil)
        time, period = [time, period].map { |text| number(text) }
        time.to_r / period if time&.positive? && period&.positive? # "max" and -1: none
      end

      def read(folder, name)
        File.read(File.join(folder, name))
      rescue SystemCallError
        nil
      end

      def number(text) = text && Integer(text, 10, exception: false)
    end
  end
end
