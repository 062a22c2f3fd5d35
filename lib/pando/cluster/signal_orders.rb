# frozen_string_literal: true

require "pando/cluster/terminal"

module Pando
  module Cluster
    # What a signal to the monitor means.
    #
    # Owned by the monitor.
    #
    # @api private
    class SignalOrders
      # @param cluster [Monitor]
      def initialize(cluster)
        @cluster = cluster
        @terminal = Terminal.new
      end

      # @param signal [String]
      def obey(signal)
        case signal
        when "TERM", "INT", "QUIT" then stop(signal)
        when "HUP" then @cluster.reload.request("HUP") unless ending? || @terminal.lost?
        when "USR2" then @cluster.generations.refork("USR2") unless ending?
        when "TTIN" then scale(1)
        when "TTOU" then scale(-1)
        end
      end

      private

      def ending? = @cluster.ending?
      def scale(more) = @cluster.rollout.resize(@cluster.rollout.size + more)

      def stop(signal)
        shutdown = @cluster.shutdown
        return shutdown.quickly(signal) if signal == "INT" && !shutdown.begun?
        return @cluster.drain.stop(signal) unless ending?
        return if signal == "QUIT" # nobody is in a hurry

        shutdown.begun? ? shutdown.at_once(signal) : @cluster.drain.stop(signal)
      end
    end
  end
end
