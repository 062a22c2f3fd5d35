# frozen_string_literal: true

module Pando
  module Cluster
    # Notices turns of the monitor's loop that take too long, since the monitor hears no child meanwhile. If such a turn
    # took hardly any processor time, the whole server is taken to have stood still: its container was frozen, or job
    # control had stopped it. That time counts for no timeout. Owned by the monitor.
    class TurnWatch
      # Seconds that a turn may take, beyond its wait.
      LIMIT = 1.0

      # @param processor [#call] gives the CPU seconds of this process
      def initialize(processor: -> { Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) })
        @processor = processor
      end

      # Called once a turn, after the wait.
      # @param asked [Float] the most seconds that it was to wait
      # @return [Float] seconds in which the whole server stood still; 0.0: none
      def turned(asked)
        now = Sys.now
        processor = @processor.call
        took = @now ? now - @now - asked : 0.0
        used = @used ? processor - @used : 0.0
        @now = now
        @used = processor
        took > LIMIT ? stalled(took, used) : 0.0
      end

      private

      def stalled(took, used)
        Events.emit("monitor.stalled", seconds: took.round(3), processor: used.round(3))
        used < took / 2 ? took - used : 0.0
      end
    end
  end
end
