# frozen_string_literal: true

require "pando/cluster/link"
require "pando/cluster/mold"
require "pando/cluster/passing_fault"
require "pando/cluster/worker"
require "pando/cluster/service"

module Pando
  module Cluster
    # The stack frame to which every role returns before a fork. A fork from inside a role would leave its frames on the
    # stack of each generation, until the application had no room left. Used in molds, workers and services; #run is the
    # outermost call of each.
    class BaseFrame
      ROLES = { mold: Mold, worker: Worker, service: Service }.freeze

      # @return [Role] the last role that this process had
      def run(role)
        while (order = role.run)
          role = fork_for(role, order)
        end
        role
      rescue SystemExit, SignalException
        raise # the application wants to exit
      rescue Exception => e # rubocop:disable Lint/RescueException
        role.report_failure(e)
        exit(1)
      end

      private

      def fork_for(role, order)
        forker = Process.pid
        return cancel(role, order) if order.cancelled?

        role.before_fork(order)
        Sys.probe_fork
        role.payload.around_fork { Sys.fork_sibling } ? cancel(role, order) : become(role, order)
      rescue Exception => e # rubocop:disable Lint/RescueException
        # The fork hook of a library may raise on either side.
        return become(role, order, e) unless Process.pid == forker
        raise unless e.is_a?(StandardError) || e.is_a?(NoMemoryError)

        refuse(role, order, kind_of_refusal(e), e)
      end

      def kind_of_refusal(error)
        return :fork_declined if error.is_a?(ForkDeclined)

        passing?(error) ? :fork_failed : :fork_refused
      end

      # Whether another try may succeed: the fault is not the generation's.
      def passing?(error)
        error.is_a?(SystemCallError) || PassingFault.of?(error) || (error.is_a?(Error) && error.passing?)
      end

      def refuse(role, order, kind, error)
        role.report(kind, seat: order.seat, text: error.message)
        cancel(role, order)
      end

      def cancel(role, order)
        order.close
        role
      end

      # No exception may escape into the frames that the fork has copied.
      def become(forker, order, trouble = nil)
        forker.abandon
        role = (order.pool ? PoolMold : ROLES.fetch(order.role)).new(order, forker.context)
        role.enter(trouble)
        role
      rescue Exception => e # rubocop:disable Lint/RescueException
        begin
          role&.report_failure(e)
        ensure
          exit!(1)
        end
      end
    end
  end
end
