# frozen_string_literal: true

require "pando/cluster/mold"

module Pando
  module Cluster
    # The first mold of another pool, forked from one that has booted from cold: what both have loaded they share. It
    # loads what it lacks, drops what belongs to clients, and from there on is a mold as any other.
    class PoolMold < Mold
      # @param order [ForkOrder]
      # @param context [Context] of the mold that it was forked from
      def initialize(order, context)
        super(order, context.of_pool(order.pool))
      end

      # @api private
      def start
        Events.about(pool: context.pool)
        context.payload = payload.become(context.pool)
        step_by_step { |tell| payload.warm_up(self, &tell) }
        super
      end
    end
  end
end
