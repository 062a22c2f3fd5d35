# frozen_string_literal: true

require "pando/events"

module Pando
  module Cluster
    # Molds and workers that somebody outside has sent TERM or QUIT. It may have gone to every process of the server (a
    # control group, the group of a shell): then the monitor's own is about to come, and they serve until the stop needs
    # them no more. Who got it alone is replaced.
    #
    # Owned by the monitor.
    #
    # @api private
    class ExternalSignals
      # Seconds within which everybody has got it.
      SPREAD = 1.0

      def initialize(rollout, generations, options)
        @rollout = rollout
        @generations = generations
        @options = options
        @asked = {}
      end

      # @param child [Child] who has told of it
      # @param signal [String]
      def add(child, signal)
        @asked[child] ||= [Sys.now + SPREAD, signal] if child.ready? && !child.service?
      end

      # Called at each turn of the monitor's loop, while it does not stop.
      def reconcile(now = Sys.now)
        @asked.select { |_, (due, _)| now >= due }.each do |child, (_, signal)|
          @asked.delete(child)
          dismiss(child, signal) if child.ready?
        end
      end

      # The server is about to stop: whoever has been told of that serves until then.
      def forget = @asked.clear

      # @return [Float, nil]
      def due = @asked.each_value.map(&:first).min

      private

      def dismiss(child, signal)
        if child.worker?
          @generations.worker_wasted(child, signal) if child.row.job.zero?
          @rollout.ask_to_leave(child, signal)
        else
          child.leave(signal, Sys.now + @options.stop_timeout)
          child.order(Message.new(:leave))
        end
      end
    end
  end
end
