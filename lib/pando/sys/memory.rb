# frozen_string_literal: true

require "etc"
require "pando/sys/control_group"

module Pando
  module Sys
    # The memory of other processes and of the machine, read from /proc and the control groups.
    # Sizes in bytes. What cannot be read is nil: the process has ended, or the kernel does not tell.
    module Memory
      # Of one process: its share of what it shares plus what it alone has, the latter by itself, and all it maps.
      Usage = Struct.new(:pss, :private, :rss)

      # Of /proc/PID/smaps_rollup (proc(5)).
      FIELDS = /^(Rss|Pss|Private_Clean|Private_Dirty): +(\d+) kB$/
      # Of /proc/PID/status.
      ANONYMOUS = /^(?:RssAnon|VmSwap):\s+(\d+) kB$/
      # Bytes of a page: not every kernel's are the same.
      PAGE = Etc.sysconf(Etc::SC_PAGESIZE)
      # Fields of /proc/PID/stat behind the command's name, in which anything may stand (proc(5)).
      MINOR_FAULTS = 7

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

        # Memory that no file is behind, also what it shares with who forked it, and what was swapped out: a page that
        # is copied because it is written to changes nothing. The kernel keeps count of it.
        #
        # @param pid [Integer]
        # @return [Integer, nil]
        def anonymous(pid)
          sizes = File.read("/proc/#{pid}/status").scan(ANONYMOUS).flatten
          sizes.sum(&:to_i) * 1024 if sizes.size == 2
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

        # What may be used: the least of the control groups' limits and the machine's memory.
        #
        # @param group [ControlGroup]
        # @return [Integer]
        def limit(group: ControlGroup.new, machine: "/proc/meminfo")
          [*group.memory_limit, File.read(machine)[/^MemTotal: +(\d+) kB$/, 1].to_i * 1024].min
        end

        # The share of the last ten seconds in which somebody waited for memory (PSI, psi.rst of Linux): in the control
        # group, or anywhere on the machine, whose OOM killer picks among us as well.
        #
        # @param group [ControlGroup]
        # @return [Float, nil] percent
        def pressure(group: ControlGroup.new, machine: "/proc/pressure/memory")
          [group.memory_pressure, machine_pressure(machine)].compact.max
        end

        private

        def machine_pressure(file)
          File.read(file)[/^some avg10=([\d.]+)/, 1]&.to_f
        rescue SystemCallError
          nil
        end
      end
    end
  end
end
