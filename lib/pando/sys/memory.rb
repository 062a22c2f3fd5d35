# frozen_string_literal: true

module Pando
  module Sys
    # The memory of other processes and of the machine, read from /proc and the control group.
    # Sizes in bytes. What cannot be read is nil: the process has ended, or the kernel does not tell.
    module Memory
      # Of one process: its share of what it shares plus what it alone has, the latter by itself, and all it maps.
      Usage = Struct.new(:pss, :private, :rss)

      # Of /proc/PID/smaps_rollup (proc(5)).
      FIELDS = /^(Rss|Pss|Private_Clean|Private_Dirty): +(\d+) kB$/
      PAGE = 4096
      # Fields of /proc/PID/stat behind the command's name, in which anything may stand (proc(5)).
      MINOR_FAULTS = 7
      CGROUP = "/sys/fs/cgroup"

      class << self
        # Costs the kernel about a millisecond for 150 MiB.
        #
        # @param pid [Integer]
        # @return [Usage, nil]
        def usage(pid)
          bytes = File.read("/proc/#{pid}/smaps_rollup").scan(FIELDS).to_h { |name, kib| [name, kib.to_i * 1024] }
          return unless bytes.size == 4

          Usage.new(bytes["Pss"], bytes["Private_Clean"] + bytes["Private_Dirty"], bytes["Rss"])
        rescue SystemCallError
          nil
        end

        # Pages that a process was given without a disk being read: an upper bound of what has become its own,
        # and hundreds of times cheaper than {usage}.
        #
        # @param pid [Integer]
        # @return [Integer, nil]
        def minor_faults(pid)
          File.read("/proc/#{pid}/stat").rpartition(")").last.split[MINOR_FAULTS]&.to_i
        rescue SystemCallError
          nil
        end

        # What may be used: the least of the control group's limit, those of the groups around it, and the machine's
        # memory.
        #
        # @return [Integer]
        def limit(root: CGROUP, groups: "/proc/self/cgroup", machine: "/proc/meminfo")
          limits = group_files(root, groups, "memory.max", "memory.limit_in_bytes").filter_map { |file| number(file) }
          [*limits, File.read(machine)[/^MemTotal: +(\d+) kB$/, 1].to_i * 1024].min
        end

        # The share of the last ten seconds in which somebody waited for memory (PSI, psi.rst of Linux).
        #
        # @return [Float, nil] percent
        def pressure(root: CGROUP, groups: "/proc/self/cgroup", machine: "/proc/pressure/memory")
          [*group_files(root, groups, "memory.pressure").first, machine].each do |file|
            return File.read(file)[/^some avg10=([\d.]+)/, 1]&.to_f
          rescue SystemCallError
            next
          end
          nil
        end

        # A file of the control group that we are in, or of the nearest around it that we can see.
        #
        # @param name [String] of version 2
        # @return [String, nil] its path
        def group_file(name) = group_files(CGROUP, "/proc/self/cgroup", name).first

        private

        # The files of our group and of those around it, innermost first. Version 2 has a line 0::PATH, version 1 one
        # for each controller.
        def group_files(root, groups, name, old_name = nil)
          lines = File.readlines(groups, chomp: true).map { |line| line.split(":", 3) }
          unified = lines.find { |number, *| number == "0" }
          old = lines.find { |_, controllers,| controllers.split(",").include?("memory") } if old_name
          [*(upward(root, unified.last, name) if unified),
           *(upward(File.join(root, "memory"), old.last, old_name) if old)]
        rescue SystemCallError
          []
        end

        # In a container the path is often one of the host's: then only the root of what we see is there.
        def upward(root, path, name)
          parts = path.split("/").reject { |part| part.empty? || part == ".." }
          files = parts.size.downto(0).map { |depth| File.join(root, *parts.first(depth), name) }
          files.select { |file| File.file?(file) }
        end

        def number(file)
          Integer(File.read(file), 10, exception: false) # "max": none
        rescue SystemCallError
          nil
        end
      end
    end
  end
end
