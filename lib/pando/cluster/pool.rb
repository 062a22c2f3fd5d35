# frozen_string_literal: true

require "pando/cluster/child_events"
require "pando/cluster/restart_throttles"
require "pando/cluster/deadlines"
require "pando/cluster/signals"
require "pando/cluster/generations"
require "pando/cluster/generations/mold_releaser"
require "pando/cluster/generations/prefault_orders"
require "pando/cluster/listening/direct_mode"
require "pando/cluster/listening/listeners"
require "pando/cluster/memory/guard"
require "pando/cluster/memory/sizing"
require "pando/cluster/poison"
require "pando/cluster/reactor/supervisor"
require "pando/cluster/reactor/lanes"
require "pando/cluster/replacements"
require "pando/cluster/rollout"
require "pando/cluster/service_supervisor"
require "pando/cluster/slow_requests"
require "pando/cluster/spawner"

module Pando
  module Cluster
    # Workers of one kind, with their own molds and generations, and all parts that the monitor has once for each kind.
    # The first pool, mostly the only one, has the reactor and the listeners, which others may share. Owned by Pools.
    class Pool
      include Brief
      extend Forwardable

      attr_reader :number, :name, :payload, :roster, :listeners, :lanes, :reactors, :generations, :rollout, :services,
                  :memory, :sizing, :external_signals, :throttles, :child_events, :poison, :slow_requests

      # Parts that all pools share, for ChildEvents.
      def_delegators :@monitor, :shutdown, :reload, :drain, :inbox, :examiner, :tally, :dismiss

      # @param first [Pool, nil] nil: this is the first one
      def initialize(monitor, plan, roster, number, first)
        @monitor = monitor
        @name = plan.name
        @payload = plan.payload
        @roster = roster
        @number = number
        @throttles = RestartThrottles.new
        @poison = Poison.new(roster, payload.options)
        @child_events = ChildEvents.new(self, payload, monitor.oom)
        build_ingress(first)
        build_generations(plan.policy)
        build_watch
      end

      def options = payload.options

      # @return [Boolean] whether its workers serve clients
      def serves? = !options.jobs

      def boot = generations.begin_boot

      # @param purpose [Symbol] of the generation in the other pool
      # @return [Child, nil] a cold-booted mold of the same release, from which the other pool's mold can be forked
      #   instead of booting
      def cold_mold_for(purpose)
        upcoming, current = [generations.upcoming, generations.current].map { |one| one if one&.forks? && !one.source }
        generation = { boot: current || upcoming, heal: current, reload: upcoming, reboot: current }.fetch(purpose)
        generation&.mold
      end

      # Whether it must wait for the first pool's boot, which it shares.
      def waits? = shared? && !!@monitor.pools.first.generations.upcoming&.booting?

      def enforce(now = Sys.now) = @deadlines.enforce(now)

      # The whole server has stood still.
      def postpone(seconds)
        @deadlines.postpone(seconds)
        generations.reforks.stood_still(seconds)
      end

      def reconcile(ending)
        generations.reconcile
        @prefault_orders.reconcile
        rollout.reconcile
        services.reconcile
        poison.reconcile
        ending ? external_signals.forget : external_signals.reconcile
        @replacements.reconcile unless ending
        @mold_releaser.reconcile(reload)
        memory.reconcile
        sizing.reconcile
        throttles.reconcile
      end

      def deadline = @deadlines.due

      def due
        parts = [memory, generations, rollout, external_signals, throttles, sizing, @mold_releaser]
        parts.filter_map(&:due).min
      end

      # (see Pools#renew)
      def renew(renewal, policy)
        before = options.workers
        payload.adopt(renewal)
        @spawner.command = renewal.command
        generations.adopt_release
        generations.reforks.policy = policy
        rollout.follow_configuration unless options.workers == before
      end

      def serving? = roster.ready_workers.any?

      def summary = "#{roster.ready_workers.size} of #{rollout.size}"

      # Restored in this order, since some refer to those before them.
      OWNERS = %i[throttles generations rollout services sizing poison].freeze

      def to_state(state) = OWNERS.each { |owner| public_send(owner).to_state(state) }
      def from_state(state) = OWNERS.each { |owner| public_send(owner).from_state(state) }

      private

      # How clients reach the workers. The first pool makes the reactor, and others with clients share it. Other pools
      # have no listeners, without which direct mode has nothing to do.
      def build_ingress(first)
        shared = first if serves?
        setup = @monitor.reactor_setup unless first
        @listeners = first.nil? || serves? ? @monitor.listeners : Listening::Listeners.new
        @lanes = shared&.lanes || lanes_for(setup)
        @spawner = Spawner.new(roster, @monitor.poller, listeners, options, @monitor.command, lanes,
                               pool: (name if @monitor.several_pools?))
        @reactors = shared&.reactors || (setup ? supervisor(setup) : lanes)
      end

      def lanes_for(setup)
        setup ? Reactor::Lanes.new(setup, @monitor.oom) : Listening::DirectMode.new(roster, listeners)
      end

      def supervisor(setup)
        Reactor::Supervisor.new(@monitor.clients, @spawner, lanes, listeners, setup, throttles: throttles)
      end

      def build_generations(policy)
        @conditions = Generations::Conditions.new(self)
        @generations = Generations.new(roster, @spawner, policy, give_up, options,
                                       throttles: throttles, heard_at: reactors.method(:heard_at), origin: origin,
                                       gauge: @monitor.gauge, conditions: @conditions)
        @rollout = Rollout.new(roster, @spawner, generations, options, throttles: throttles, others: other_lanes)
        @replacements = Replacements.new(roster, generations, rollout, @conditions)
        @prefault_orders = Generations::PrefaultOrders.new(roster, generations, options)
      end

      def other_lanes = -> { serves? ? (@monitor.pools.select(&:serves?) - [self]).sum { |one| one.rollout.lanes } : 0 }

      def shared? = options.shared && number.positive?
      def origin = ->(purpose) { @monitor.pools.first.cold_mold_for(purpose) if shared? }
      def give_up = ->(reason, detail) { @monitor.pools.give_up(self, reason, detail) }

      def build_watch
        @slow_requests = SlowRequests.new(options, name)
        @deadlines = Deadlines.new(roster, child_events, options, slow_requests)
        @services = ServiceSupervisor.new(roster, @spawner, generations, options, throttles: throttles)
        @external_signals = ExternalSignals.new(rollout, generations, options)
        @mold_releaser = Generations::MoldReleaser.new(self, @conditions, @monitor.gauge)
        build_memory
      end

      def build_memory
        @memory = Memory::Guard.new(roster, options, rollout, generations, @monitor.gauge, @monitor.shortage)
        @sizing = Memory::Sizing.new(roster, rollout, options, @monitor.gauge)
      end
    end
  end
end
