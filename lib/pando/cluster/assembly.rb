# frozen_string_literal: true

module Pando
  module Cluster
    # How the monitor's parts are put together: who knows whom.
    #
    # @api private
    module Assembly
      private

      def build
        options = @payload.options
        oom = Memory::OomWatch.new
        @dampers = Damping::Dampers.new
        caretaker = Caretaker.new(self, @payload, oom)
        @roster = @start.roster
        @shutdown = Shutdown.new(roster, options, ->(child) { @inbox.read(child) })
        @spawner = build_spawner(@start.reactor(@payload), oom)
        @generations = build_generations(options)
        @rollout = Rollout.new(roster, @spawner, generations, options, dampers: dampers)
        build_watch(caretaker)
      end

      def build_generations(options)
        @gauge = Memory::Gauge.new
        Generations.new(roster, @spawner, @policy, shutdown.method(:fail), options,
                        dampers: dampers, heard_at: reactors.method(:heard_at),
                        gauge: @gauge, conditions: Generations::Conditions.new(self))
      end

      # @param setup [Object, nil] see Payload#reactor
      def build_spawner(setup, oom)
        @lanes = lanes = setup ? Reactor::Lanes.new(setup, oom) : Listening::DirectMode.new(roster, listeners)
        spawner = Spawner.new(roster, @poller, listeners, @payload.options, @command, lanes)
        @reactors = setup ? Reactor::Keeper.new(roster, spawner, lanes, listeners, setup, dampers: dampers) : lanes
        spawner
      end

      def build_watch(caretaker)
        build_ways_out
        @inbox = Inbox.new(roster, @poller, caretaker)
        @reaper = Reaper.new(roster, @inbox, caretaker)
        @examiner = Examiner.new(@poller, @payload.examination_command)
        @deadlines = Deadlines.new(roster, caretaker, @payload.options)
        @hot_sets = Generations::HotSets.new(roster, generations, @payload.options)
        @services = ServiceKeeper.new(roster, @spawner, generations, @payload.options, dampers: dampers)
        build_memory(@payload.options)
        build_changes
      end

      def build_changes
        addresses = Listening::Addresses.new(listeners, @control, reactors)
        @reload = Reload.new(generations, @payload, @poller, addresses, method(:renew))
        @upgrade = Upgrade.new(self, @payload, @poller, @signals, @image)
      end

      def build_ways_out
        @orders = SignalOrders.new(self)
        @drain = Drain.new(roster, shutdown, @payload.options)
        @dismissals = Dismissals.new(rollout, generations, @payload.options)
      end

      def build_memory(options)
        @memory = Memory::Keeper.new(roster, options, rollout, generations.method(:worker_wasted), gauge: @gauge)
        @sizing = Memory::Sizing.new(roster, rollout, options, @gauge)
      end
    end
  end
end
