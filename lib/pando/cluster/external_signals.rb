# frozen_string_literal: true

module Pando
  module Cluster
    # Handles TERM or QUIT that a mold or worker got from outside. If the signal went to every process of the server (a
    # control group, the group of a shell), the monitor's own is about to come, and they serve until the stop. A process
    # that alone got it is replaced. Owned by a Pool, in the monitor.
    class ExternalSignals
      # Seconds within which all processes have got it.
      SPREAD = 1.0

      def initialize(rollout, generations, options)
        @rollout = rollout
        @generations = generations
        @options = options
        @asked = {}
      end

      # @param child [Child] that reported it
      def add(child, signal)
        @asked[child] ||= [Sys.now + SPREAD, signal] if child.ready? && !child.service?
      end

      # Called at each turn of the monitor's loop, until the server stops.
      def reconcile(now = Sys.now)
        @asked.select { |_, (due, _)| now >= due }.each do |child, (_, signal)|
          @asked.delete(child)
          dismiss(child, signal) if child.ready?
        end
      end

      # The server is about to stop: the processes that got the signal serve until then.
      def forget = @asked.clear

      # @return [Float, nil]
      def due = @asked.each_value.map(&:first).min

      private

      def dismiss(child, signal)
        if child.worker?
          @generations.worker_wasted(child, signal) if child.row.job.zero?
          @rollout.ask_to_leave(child, signal)
        else
          child.ask_to_leave(signal, Sys.now + @options.stop_timeout)
        end
      end
    end
  end
end
