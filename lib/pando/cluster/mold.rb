# frozen_string_literal: true

require "pando/cluster/role"

module Pando
  module Cluster
    # The process that workers and services are forked from. It serves no requests.
    #
    # The mold of a cold boot is a fresh image (see Boot). Each later mold is forked from a worker that has served.
    class Mold < Role
      # Seconds that it sleeps at most, since a signal may come just before it falls asleep.
      TICK = 1.0

      # @api private
      def role = :mold

      # Runs a cold boot up to readiness, in a fresh image that is a direct child of the monitor. The block returns the
      # payload; if it raises, the boot has failed.
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
        warm_up
        start
        payload.audit(self)
        report_ready
        started
      end

      # @api private
      def run
        until leaving?
          poller.wait(TICK)
          report_signal
          order = read_orders
          return order if order

          payload.tick(self)
          proceed_with_log
        end
      end

      # @api private
      def start
        payload.attach(self)
        take_oom_score(:mold) # as a worker it had a higher score
        payload.run_hook(:after_mold_fork, self)
        payload.prepare
      end

      private

      # Each step of the self-check has a deadline of its own. What the application does has that of the boot.
      def warm_up
        step_by_step { |tell| payload.self_check(&tell) }
        payload.warm_up(self)
      end

      # The monitor makes the lanes of workers before it orders them.
      def report_ready = report(:ready, text: payload.threads.to_s)

      # Returns free memory to the kernel once, instead of in each process that will be forked. What the payload makes
      # after that, all of them share.
      def started
        Sys.trim_memory
        payload.ready_to_fork(self)
        name_process("")
      end

      # The order carries the pagemap of a worker, and its memory if that may be read. Other workers will write to the
      # same pages.
      def obey(packet)
        return super unless packet.message.kind == :observe

        payload.observe(self, *packet.descriptors) if packet.descriptors.any?
      ensure
        packet.descriptors.each { |fd| Sys.close_fd(fd) } if packet.message.kind == :observe
      end

      def title = "gen #{generation}"
      def outlives_monitor? = false
    end

    # The first mold of another pool, forked from a cold-booted mold of the first pool to share what both load. It loads
    # the rest and drops what belongs to clients. From then on it is a mold like any other.
    class PoolMold < Mold
      def initialize(order, context)
        super(order, context.of_pool(order.pool, serves: context.payload.serves?(order.pool)))
      end

      # @api private
      def start
        Events.about(pool: context.pool)
        context.payload = payload.become(context.pool)
        warm_up
        super
      end
    end
  end
end
