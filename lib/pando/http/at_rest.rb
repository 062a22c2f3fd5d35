# frozen_string_literal: true

require "pando/fork_safety/libraries"
require "pando/sys"

module Pando
  module HTTP
    # When an HTTP worker can be forked: between two requests nothing of it runs but the connections that the
    # application has taken over. Their clients are told to connect again elsewhere, and the fork waits a little for
    # them; requests are served meanwhile. Included by Work and QueuedWork, in a worker.
    module AtRest
      # Seconds that clients are given to close their connections before the fork.
      GOODBYE = 1.0
      # Seconds between two counts of the connections.
      COUNT = 0.25

      # Whether the process can be forked. Asked again and again until then.
      # @return [Boolean]
      def rest?
        return true if ForkSafety.connections.zero?

        @goodbye_until ||= Sys.now + GOODBYE
        ForkSafety::Libraries.say_goodbye || Sys.now >= @goodbye_until
      end

      # @return [Float] seconds that it takes at most
      def patience = GOODBYE * 2

      # It has been forked, or will not be, and serves on.
      def go_on
        @goodbye_until = nil
      end

      # Who brings requests asks nobody; `pando drain` tells them.
      # @return [nil]
      def quiet = nil

      private

      # Tells the monitor, which prefers a worker without connections as the source of a mold.
      # @param worker [Cluster::Worker]
      def count_connections(worker)
        now = Process.clock_gettime(Process::CLOCK_MONOTONIC_COARSE)
        return if @counted_at && now - @counted_at < COUNT

        @counted_at = now
        count = ForkSafety.connections
        worker.connections = count unless count == @connections
        @connections = count
      end
    end
  end
end
