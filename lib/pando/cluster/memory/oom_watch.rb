# frozen_string_literal: true

require "pando/sys/memory"

module Pando
  module Cluster
    module Memory
      # Whether the kernel has killed somebody for want of memory since it was asked
      # last: it counts them, in the control group (memory.events; memory.oom_control of
      # version 1) or on the machine. It does not say whom: its victims die of SIGKILL as others do.
      #
      # Owned by the monitor.
      #
      # @api private
      class OomWatch
        MACHINE = "/proc/vmstat"
        # Seconds: of several victims at once we hear one by one.
        MEMORY = 2.0

        # @param paths [Array<String>] files with a line "oom_kill N"; the first one that has it counts
        def initialize(paths = [Sys::ControlGroup.new.oom_counter, MACHINE])
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
          seen = read || @seen # nil: we have no descriptor left
          @struck_at = Sys.now if seen != @seen
          @seen = seen
          !@struck_at.nil? && Sys.now - @struck_at < MEMORY
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
