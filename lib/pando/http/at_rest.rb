# frozen_string_literal: true

require "pando/fork_safety/queued_work"
require "pando/sys"

module Pando
  module HTTP
    # What Work and QueuedWork say of when they can be forked: between two requests, and best while no job runs in
    # the background, whose thread may hold a lock that nobody in the child would ever open. The jobs themselves
    # stay with this process, which goes on doing them, so a busy queue delays the fork but never prevents it.
    #
    # @api private
    module AtRest
      # Seconds for which a moment without background jobs is waited for. Requests are served meanwhile.
      LONGEST = 2.0

      # @return [Boolean] whether the fork may come now
      def rest?
        @rest_by ||= Sys.now + LONGEST
        Sys.now >= @rest_by || !ForkSafety::QueuedWork.pending?
      end

      # @return [Float] seconds that it takes, at most
      def patience = LONGEST * 5

      # It has been forked, or will not be, and serves on.
      def go_on
        @rest_by = nil
      end

      # Who brings requests asks nobody; `pando drain` tells them.
      # @return [nil]
      def quiet = nil
    end
  end
end
