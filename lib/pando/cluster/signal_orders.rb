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
      # @param jobs [Boolean] whether it does nothing but jobs: then some signals mean what they do to job processors
      def initialize(cluster, jobs: false)
        @cluster = cluster
        @jobs = jobs
        @terminal = Terminal.new
      end

      # @param signal [String]
      def obey(signal)
        case signal
        when "TERM", "INT", "QUIT" then stop(signal)
        when "TTIN" then @jobs ? show_stacks : scale(1)
        when "TTOU" then scale(-1) unless @jobs
        else change(signal) unless ending?
        end
      end

      private

      def change(signal)
        case signal
        when "HUP" then @cluster.reload.request("HUP") unless @terminal.lost?
        when "USR2" then refork
        when Signals::QUIET then @cluster.quiet.begin(signal)
        end
      end

      def show_stacks = @cluster.roster.ready_workers.each { |worker| worker.signal("TTIN") }
      def ending? = @cluster.ending?

      def refork
        pools = @cluster.pools
        pools.each { |pool| pools.about(pool) { pool.generations.refork("USR2") } }
      end

      # The first pool: which of several kinds there are more of is for `pando scale` to say.
      def scale(more) = @cluster.rollout.resize(@cluster.rollout.size + more)

      # ^C at the prompt of a debugger is meant for the debugger, and the request that it has stopped is still busy.
      def typed_at_prompt?(signal)
        signal == "INT" && @cluster.roster.workers.any? { |worker| worker.row.busy_since } && @terminal.prompt?
      end

      def stop(signal)
        return if typed_at_prompt?(signal)

        shutdown = @cluster.shutdown
        return shutdown.quickly(signal) if signal == "INT" && !shutdown.begun?
        return @cluster.drain.stop(signal) unless ending?
        return if signal == "QUIT" # nobody is in a hurry

        shutdown.begun? ? shutdown.at_once(signal) : @cluster.drain.stop(signal)
      end
    end
  end
end
