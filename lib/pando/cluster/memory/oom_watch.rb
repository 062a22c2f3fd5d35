# frozen_string_literal: true

require "pando/sys/memory"

module Pando
  module Cluster
    module Memory
      # Whether the kernel has killed processes because memory was out. It counts them, in the control group
      # (memory.events; memory.oom_control of version 1) or on the machine, but does not name them: they die of SIGKILL
      # as others do.
      #
      # Owned by the monitor.
      class OomWatch
        MACHINE = "/proc/vmstat"
        # Seconds in which the deaths of several victims are noticed one by one.
        MEMORY = 2.0

        # @param paths [Array<String>] files with a line "oom_kill N"; the first one that has it counts
        def initialize(paths = [Sys::ControlGroup.new.oom_counter, MACHINE])
          @path = paths.compact.find { |path| count(path) }
          @seen = read
        end

        # @param child [Child] whose ending is known
        # @return [Boolean] whether the kernel has probably killed it for memory
        def victim?(child)
          ending = child.ending
          !!ending&.killed? && ending.number == Signal.list["KILL"] && !child.condemned? && killed_recently?
        end

        # @return [Boolean]
        def killed_recently?
          seen = read || @seen # nil: there is no descriptor left
          @killed_at = Sys.now if seen != @seen
          @seen = seen
          !@killed_at.nil? && Sys.now - @killed_at < MEMORY
        end

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
end
