# frozen_string_literal: true

require "pando/fork_safety/libraries"

module Pando
  class Server
    # Connections to databases end with a fork, and to make them anew was most of what the first request of a reforked
    # worker took longer than others. So each worker connects before it serves, to what the one was connected to whose
    # memory it has. What is not reached at once is left to the first request, as without.
    #
    # Made in a mold that boots from cold, inherited by all that is forked from it. It knows of ActiveRecord.
    #
    # @api private
    class Reconnection
      # Seconds that a worker waits for its connections before it serves. The attempt goes on beside its requests.
      WITHIN = 0.5

      # @param within [Float] seconds
      def initialize(within: WITHIN)
        @within = within
        @databases = []
      end

      # In a worker that is about to fork a mold, before anybody closes anything.
      # @return [void]
      def note
        @databases = pools.connected if known?
      rescue StandardError
        @databases = []
      end

      # In a new worker.
      # @return [void]
      def run
        Thread.new { connect }.join(@within) unless @databases.empty?
      end

      private

      def known? = ForkSafety::Libraries::Known.loaded?("activerecord")
      def pools = ForkSafety::Libraries::ActiveRecordPools

      # Whatever goes wrong will go wrong in a request, which can say so.
      def connect
        pools.connect(@databases)
      rescue StandardError, ScriptError
        nil
      end
    end
  end
end
