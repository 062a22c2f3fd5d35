# frozen_string_literal: true

module Pando
  module Sys
    # The control group of this process and its ancestor groups, read from their files (Linux' cgroup-v2.rst and
    # cgroup-v1/memory.rst). Supports both versions, also side by side. Values that a group or the kernel does not
    # provide are nil.
    class ControlGroup
      ROOT = "/sys/fs/cgroup"
      MEMBERSHIP = "/proc/self/cgroup"
      # Where version 2 is mounted: alone, or next to version 1.
      UNIFIED = ["", "unified"].freeze
      # Version 1 shows the largest number of pages if there is no limit.
      BOUNDLESS = 2**60
      # By the limit's file: the file of the usage, and the line of memory.stat to subtract from it.
      USE = { "memory.max" => %w[memory.current inactive_file],
              "memory.limit_in_bytes" => %w[memory.usage_in_bytes total_inactive_file] }.freeze

      # Usage and limit of a group, in bytes. The usage leaves out inactive files, which the kernel drops before it
      # kills.
      Memory = Struct.new(:used, :limit) do
        def percent = used * 100.0 / limit
        def left = [limit - used, 0].max
      end

      # @param root [String] where control groups are mounted
      # @param groups [String] a file in the format of /proc/PID/cgroup (proc(5))
      def initialize(root: ROOT, groups: MEMBERSHIP)
        @root = root
        @groups = groups
      end

      # @return [Integer, nil] bytes: the smallest limit of our group and its ancestors
      def memory_limit
        levels("memory", "memory.max", "memory.limit_in_bytes").filter_map { |folder, name| limit(folder, name) }.min
      end

      # @return [Memory, nil] of the fullest group that has a limit
      def memory = fills.max_by(&:percent)

      # @return [Integer, nil] bytes: the least that our group or an ancestor has left, which may not be the fullest one
      def memory_left = fills.map(&:left).min

      # The share of the last ten seconds in which a process of the group waited for memory (PSI, Linux' psi.rst).
      def memory_pressure
        folder, name = levels(nil, "memory.pressure").first
        ControlGroup.pressure(File.join(folder, name)) if folder
      end

      # @param file [String] in the format of PSI
      # @return [Float, nil] percent
      def self.pressure(file)
        File.read(file)[/^some avg10=([\d.]+)/, 1]&.to_f
      rescue SystemCallError
        nil
      end

      # @return [String, nil] the file with a line "oom_kill N", the number of our processes that the kernel has killed
      #   for memory
      def oom_counter
        folder, name = levels("memory", "memory.events", "memory.oom_control").first
        folder && File.join(folder, name)
      end

      # @return [Rational, nil] how many CPUs' time we may use; the smallest quota of our group and its ancestors
      def cpu_quota
        [*levels(nil, "cpu.max").filter_map { |folder, name| share(*read(folder, name)&.split) },
         *levels("cpu", nil, "cpu.cfs_quota_us").filter_map do |folder, name|
           share(read(folder, name), read(folder, "cpu.cfs_period_us"))
         end].min
      end

      private

      # @return [Array<Memory>] of our group and its ancestors, as far as they have limits
      def fills
        levels("memory", "memory.max", "memory.limit_in_bytes").filter_map { |folder, name| fill(folder, name) }
      end

      # The folders of our group and its ancestors, innermost first, that have the file of their version. In
      # /proc/PID/cgroup, version 2 has one line 0::PATH, and version 1 has a line for each controller.
      def levels(controller, name, old_name = nil)
        unified = path { |number,| number == "0" } if name
        old = path { |_, controllers| controllers.split(",").include?(controller) } if old_name
        [*(UNIFIED.flat_map { |place| upward(File.join(@root, place), unified, name) } if unified),
         *(upward(File.join(@root, controller), old, old_name) if old)]
      end

      # The path in the first line that the block selects.
      def path(&block)
        lines = File.readlines(@groups, chomp: true).map { |line| line.split(":", 3) }
        lines.select { |line| line.size == 3 }.find(&block)&.last
      rescue SystemCallError
        nil
      end

      # In a container, the path is often one of the host's; then only the root that we see has the file.
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
        bytes = number(read(folder, name)) # "max": no limit
        bytes if bytes && bytes < BOUNDLESS
      end

      def share(time = nil, period = nil)
        time, period = [time, period].map { |text| number(text) }
        time.to_r / period if time&.positive? && period&.positive? # "max" and -1: no quota
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
