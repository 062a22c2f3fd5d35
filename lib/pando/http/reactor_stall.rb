# frozen_string_literal: true

require "pando/events"
require "pando/sys"

module Pando
  module HTTP
    # Tells once of a queue that does not move because every worker is at a request: in development that may be for
    # ever, for there are few workers and no deadlines. An app that requests something from itself waits like that.
    # Owned by {ReactorReport}, in the monitor.
    #
    # @api private
    class ReactorStall
      # Seconds that the queue stands still before that is told.
      PATIENCE = 5.0

      # Called at each report.
      #
      # @param waiting [Integer] requests in the queue
      # @param jobs [Cluster::Reactor::Jobs]
      # @return [void]
      def look(waiting, jobs)
        before = @standstill
        @standstill = (jobs.standstill if waiting.positive?)
        @told = false unless waiting.positive?
        @since = Sys.now if @standstill != before
        return if @told || @standstill.nil? || Sys.now - @since < PATIENCE

        @told = true
        tell(waiting, jobs)
      end

      private

      def tell(waiting, jobs)
        Events.emit("queue.stalled", waiting: waiting, seconds: (Sys.now - @since).floor, busy: jobs.to_line,
                                     advice: advice(jobs.workers))
      end

      def advice(workers)
        what = workers == 1 ? "the only worker is at this request" : "all #{workers} workers are at requests"
        "#{what}; to serve more at once, write workers #{workers + 1} or set WEB_CONCURRENCY=#{workers + 1}"
      end
    end
  end
end
