# frozen_string_literal: true

require "pando/sys/control_group"

module Pando
  module Cluster
    module Memory
      # Whether the kernel has killed processes because memory was out. It counts them, in the control group
      # (memory.events; memory.oom_control of version 1) or on the machine, but does not name them: they die of SIGKILL
      # as others do. Owned by the monitor.
      class OomWatch
        MACHINE = "/proc/vmstat"
        # Seconds between two looks at the counter.
        TICK = 0.25
        # Seconds in which the deaths of several victims are noticed one by one.
        MEMORY = 2.0

        # @param paths [Array<String>] files with a line "oom_kill N"; the first one that has it counts
        def initialize(paths = [Sys::ControlGroup.new.oom_counter, MACHINE])
          @path = paths.compact.find { |path| count(path) }
          @seen = read
          @looked_at = Sys.now
        end

        # Called at each turn of the monitor's loop: at a death nobody can tell when the counter rose.
        def look(now = Sys.now)
          note(now) if now - @looked_at >= TICK
        end

        # @return [Boolean] whether the kernel has probably killed it for memory
        def victim?(child)
          ending = child.ending
          !!ending&.killed? && ending.number == Signal.list["KILL"] && !child.condemned? && killed_recently?
        end

        def killed_recently?
          note
          !@killed_at.nil? && Sys.now - @killed_at < MEMORY
        end

        private

        def note(now = Sys.now)
          @looked_at = now
          seen = read || @seen # nil: there is no descriptor left
          @killed_at = now if seen != @seen
          @seen = seen
        end

        def read = @path && count(@path)

        def count(path)
          File.read(path)[/^oom_kill (\d+)$/, 1]&.to_i
        rescue SystemCallError
          nil
        end
      end
    end
  end
end
