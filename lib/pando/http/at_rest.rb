# frozen_string_literal: true

require "pando/fork_safety/libraries"
require "pando/fork_safety/queued_work"
require "pando/sys"

module Pando
  module HTTP
    # When an HTTP worker can be forked: between two requests. Clients of connections that the application has taken
    # over are told to connect again elsewhere, and the fork waits a little for them. It also waits for a moment in
    # which no job runs in the background, since the thread of a job may hold a lock that nothing in the child would
    # ever open. The jobs stay with this process, so a busy queue delays the fork but never prevents it. Requests are
    # served meanwhile.
    #
    # Included by Work and ReactorHandler, in a worker.
    #
    # @api private
    module AtRest
      # Seconds for which a moment without background jobs is waited for.
      LONGEST = 2.0
      # Seconds of these that clients are given to close their connections.
      GOODBYE = 1.0
      # Seconds between two counts of the connections.
      COUNT = 0.25

      # Asked again and again until then.
      # @return [Boolean] whether the fork may come now
      def rest?
        @rest_by ||= Sys.now + LONGEST
        told = told_goodbye?
        Sys.now >= @rest_by || (told && !ForkSafety::QueuedWork.pending?)
      end

      # @return [Float] seconds that it takes, at most
      def patience = LONGEST * 5

      # It has been forked, or will not be, and serves on.
      def go_on
        @rest_by = nil
      end

      # Nothing to do: the clients decide when requests come. `pando drain` takes the server out of rotation.
      # @return [nil]
      def quiet = nil

      private

      # @return [Boolean] whether no client is left that would have to connect again, or all have had their time
      def told_goodbye?
        return true if ForkSafety.connections.zero?

        ForkSafety::Libraries.say_goodbye || Sys.now >= @rest_by - LONGEST + GOODBYE
      end

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
