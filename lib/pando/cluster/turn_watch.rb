# frozen_string_literal: true

require "pando/events"
require "pando/sys"

module Pando
  module Cluster
    # Notices turns of the monitor's loop that take too long: nobody is heard meanwhile. One that takes long and hardly
    # any processor time is taken for time in which the whole server stood still, for its container was frozen, or job
    # control had stopped it: that time is no one's timeout.
    #
    # Owned by the monitor.
    #
    # @api private
    class TurnWatch
      # Seconds that a turn may take, beyond what it was to wait for.
      LIMIT = 1.0

      # @param processor [#call] seconds that this process has had on a CPU
      def initialize(processor: -> { Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) })
        @processor = processor
      end

      # Called once a turn, when it has waited.
      # @param asked [Float] seconds that it was to wait for, at most
      # @return [Float] seconds in which nobody could do anything; 0.0: none
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
