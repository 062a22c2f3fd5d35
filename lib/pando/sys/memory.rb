# frozen_string_literal: true

require "etc"
require "pando/sys/control_group"
require "pando/sys/process_stat"

module Pando
  module Sys
    # The memory of other processes and of the machine, read from /proc and the control groups.
    # Sizes are in bytes. A value that cannot be read is nil: the process has ended, or the kernel does not provide it.
    module Memory
      # Memory of one process: its proportional share (PSS), its private memory, and all that is resident (RSS).
      Usage = Struct.new(:pss, :private, :rss)
      # Bytes that are left, and where they are the fewest: :group or :machine.
      Left = Struct.new(:bytes, :place)

      # Lines of /proc/PID/smaps_rollup (proc(5)).
      FIELDS = /^(Rss|Pss|Private_Clean|Private_Dirty): +(\d+) kB$/
      # Lines of /proc/PID/status.
      ANONYMOUS = /^(?:RssAnon|VmSwap):\s+(\d+) kB$/
      # Bytes of a page, which depend on the kernel.
      PAGE = Etc.sysconf(Etc::SC_PAGESIZE)

      class << self
        # Takes the kernel about a millisecond for 150 MiB.
        def usage(pid)
          bytes = File.read("/proc/#{pid}/smaps_rollup").scan(FIELDS).to_h { |name, kib| [name, kib.to_i * 1024] }
          return unless bytes.size == 4

          Usage.new(bytes["Pss"], bytes["Private_Clean"] + bytes["Private_Dirty"], bytes["Rss"])
        rescue SystemCallError
          nil
        end

        # Anonymous memory, including pages shared with the forking process and pages that were swapped out. Copying a
        # page on write does not change the sum. The kernel keeps count of it, so it is cheap to read.
        def anonymous(pid)
          sizes = File.read("/proc/#{pid}/status").scan(ANONYMOUS).flatten
          sizes.sum(&:to_i) * 1024 if sizes.size == 2
        rescue SystemCallError
          nil
        end

        # Pages that a process was given without reading from disk: an upper bound of the pages that have become
        # private, and hundreds of times cheaper than {usage}.
        def minor_faults(pid) = ProcessStat.read(pid)&.minor_faults

        # The memory that may be used: the smallest of the control groups' limits and the machine's memory.
        def limit(group: ControlGroup.new, machine: "/proc/meminfo")
          [group.memory_limit, total(machine)].compact.min
        end

        # The memory that is left: of a control group, or of the machine, whichever has less. A group's inactive files
        # count as free, and so does what the kernel estimates that the machine can free.
        #
        # @return [Left, nil]
        def left(group: ControlGroup.new, machine: "/proc/meminfo")
          places = { group: group.memory_left, machine: available(machine) }.compact
          places.map { |place, bytes| Left.new(bytes, place) }.min_by(&:bytes)
        end

        # The share of the last ten seconds in which a process waited for memory (PSI, Linux' psi.rst): in the control
        # group, or anywhere on the machine, because the machine's OOM killer may pick our processes as well.
        #
        # @return [Float, nil] percent
        def pressure(group: ControlGroup.new, machine: "/proc/pressure/memory")
          [group.memory_pressure, ControlGroup.pressure(machine)].compact.max
        end

        private

        def available(machine)
          File.read(machine)[/^MemAvailable: +(\d+) kB$/, 1]&.then { |kib| kib.to_i * 1024 }
        rescue SystemCallError
          nil
        end

        # Without the file, as under systemd's ProcSubset=pid and on other systems, the C library may know the number of
        # pages.
        def total(machine)
          File.read(machine)[/^MemTotal: +(\d+) kB$/, 1].to_i * 1024
        rescue SystemCallError
          pages = physical_pages
          pages && (pages * PAGE)
        end

        # Not every system has a name for the number, or answers.
        def physical_pages
          Etc.sysconf(Etc::SC_PHYS_PAGES)
        rescue SystemCallError, NameError
          nil
        end
      end
    end
  end
end
