# frozen_string_literal: true

require "pando/cluster/role"

module Pando
  module Cluster
    # The process that workers and services are forked from. It serves nothing.
    #
    # Generation 0 is a fresh image (see Boot); each later mold is the child of
    # a worker that has served.
    class Mold < Role
      # Seconds that it sleeps at most: a signal may come just before it falls asleep.
      TICK = 1.0

      # @api private
      def role = :mold

      # The cold way to readiness: a direct child of the monitor, a fresh image.
      # The block gives the payload; what it raises is the boot's failure.
      #
      # @api private
      def boot
        bind_to_monitor
        name_process("booting")
        report(:adopted)
        take_seat
        set_traps
        context.payload = yield
        payload.load
        step_by_step { |tell| payload.warm_up(self, &tell) }
        start
        payload.audit(self)
        report(:ready)
        started
      end

      # @api private
      def run
        until leaving?
          poller.wait(TICK)
          pass_signal_on
          order = read_orders
          return order if order

          payload.tick(self)
          proceed_with_log
        end
      end

      # @api private
      def start
        payload.attach(self)
        take_oom_score(:mold) # as a worker it had a higher one
        payload.run_hook(:after_mold_fork, self)
        payload.prepare
      end

      private

      # What is free here need not be free in each of those that will be forked.
      def started
        Sys.trim_memory
        name_process("")
      end

      # With it comes the pagemap of one of its workers: what that has written to, others will.
      def obey(packet)
        return super unless packet.message.kind == :observe

        pagemap = packet.descriptors.first
        payload.observe(self, pagemap) if pagemap
      ensure
        packet.descriptors.each { |fd| Sys.close_fd(fd) } if packet.message.kind == :observe
      end

      def title = "gen #{generation}"
      def outlives_monitor? = false
    end

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
