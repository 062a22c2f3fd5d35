# frozen_string_literal: true

module Pando
  module Cluster
    # How the monitor's parts are put together: who knows whom.
    #
    # @api private
    module Assembly
      private

      def build
        @roster = @start.roster
        @shutdown = Shutdown.new(roster, @payload.options, method(:read),
                                 options_of: ->(child) { pools.of(child).options })
        @pools = build_pools
        @drain = Drain.new(pools.first.roster, shutdown, @payload.options)
        @orders = SignalOrders.new(self, jobs: @payload.options.jobs)
        @quiet = Quiet.new(pools)
        build_watch
        build_changes
      end

      def build_pools
        plans = [Pools::Plan.new(payload: @payload, policy: @policy), *@companions]
        common = build_common(plans.size > 1)
        ingress = Pools::Ingress.new(listeners, @start.reactor(@payload))
        Pools.new(plans, roster, shutdown) do |plan, roster, number|
          Pool.new(self, plan, roster, number, common, number.zero? ? ingress : Pools::Ingress.none)
        end
      end

      def build_common(several)
        gauge = Memory::Gauge.new
        shortage = Memory::Shortage.new(@payload.options, gauge)
        Pools::Common.new(poller: @poller, command: @command, oom: Memory::OomWatch.new, gauge: gauge,
                          shortage: shortage, relief: Memory::Relief.new(shortage), several: several)
      end

      def build_watch
        @inbox = Inbox.new(roster, @poller, pools.child_event_router)
        @reaper = Reaper.new(roster, @inbox, pools.child_event_router)
        @examiner = Examiner.new(@poller, @payload.examination_command)
        @systemd.ready_when { pools.serve? }
      end

      def build_changes
        addresses = Listening::Addresses.new(listeners, @control, reactors)
        @reload = Reload.new(pools.releases, @payload, @poller, addresses, method(:renew))
        @upgrade = Upgrade.new(self, @payload, @poller, @signals, @image)
      end
    end
  end
end
