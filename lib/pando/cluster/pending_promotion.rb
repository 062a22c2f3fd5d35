# frozen_string_literal: true

require "pando/sys"

module Pando
  module Cluster
    # The order to fork the next mold, in the hands of a worker. What it does must rest first: between two requests an
    # HTTP worker does; a node's jobs come to their end, or to that of our patience, and then another node is asked.
    #
    # Owned by the worker, in its process.
    #
    # @api private
    class PendingPromotion
      # Seconds between two looks whether it rests by now.
      LOOK = 0.02

      # @param worker [Worker]
      # @param work [#rest?, #patience, #go_on] see Payload#work
      def initialize(worker, work)
        @worker = worker
        @work = work
      end

      # @return [Float] seconds that the worker may sleep
      def pace(otherwise) = @order ? LOOK : otherwise

      # @param order [ForkOrder]
      # @return [nil]
      def begin(order)
        @order&.close
        @order = order
        @until = Sys.now + @work.patience
        nil
      end

      # @return [Boolean] whether there is nothing left to wait for: nothing more is begun before the fork
      def due? = !@order.nil? && !@order.cancelled? && !@worker.leaving? && @work.rest?

      # @return [ForkOrder, nil] one that is to be carried out now
      def order
        return unless @order
        return abandon if @order.cancelled? || @worker.leaving?
        return refuse if !@work.rest? && Sys.now >= @until
        return unless @work.rest?

        @forked = true
        @order.tap { @order = nil }
      end

      # In the forker, when the fork is done or could not be.
      def over
        @work.go_on if @forked
        @forked = false
      end

      private

      def refuse
        @worker.report(:fork_refused, seat: @order.seat, text: "its jobs did not end within #{@work.patience} s")
        abandon
      end

      def abandon
        @order.close
        @order = nil
        @work.go_on
        nil
      end
    end
  end
end
