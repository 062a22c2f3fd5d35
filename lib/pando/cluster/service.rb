# frozen_string_literal: true

require "pando/cluster/role"

module Pando
  module Cluster
    # A process that runs a loop of the user's. It is forked from the mold.
    #
    #   service(:flusher) { |service| flush until service.wait(10) }
    class Service < Role
      # Closes what belongs to clients.
      def initialize(order, context)
        super(order, context.of_pool(context.pool))
      end

      # @return [Symbol]
      def name = options.services.fetch(slot)

      # @return [Boolean] whether the loop should end now
      def stopping?
        read_orders unless @leaving
        proceed_with_log
        leaving?
      end

      # Sleeps, but wakes up when the service should stop.
      # @param seconds [Float]
      # @return [Boolean] stopping?
      def wait(seconds)
        deadline = Sys.now + seconds
        until stopping?
          left = deadline - Sys.now
          return false if left <= 0

          poller.wait(left)
        end
        true
      end

      # @api private
      def role = :service

      # @api private
      def run
        payload.run_service(slot, self)
        nil
      end

      # @api private
      def start
        payload.attach(self)
        raise BootError, "no service number #{slot} in the config" unless options.services[slot]
      end

      private

      def started
        name_process("")
      end

      # The service just ends: the monitor starts another one if it is still wanted.
      def signalled(_signal)
        @leaving = true
      end

      def title = "#{name} gen #{generation}"
      def outlives_monitor? = true
    end
  end
end
