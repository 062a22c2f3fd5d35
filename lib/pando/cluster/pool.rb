# frozen_string_literal: true

require "forwardable"
require "pando/cluster/brief"
require "pando/cluster/child_events"
require "pando/cluster/throttling/restart_throttles"
require "pando/cluster/deadlines"
require "pando/cluster/external_signals"
require "pando/cluster/generations"
require "pando/cluster/generations/hot_sets"
require "pando/cluster/generations/mold_releaser"
require "pando/cluster/listening/direct_mode"
require "pando/cluster/memory/guard"
require "pando/cluster/memory/sizing"
require "pando/cluster/poison"
require "pando/cluster/reactor/supervisor"
require "pando/cluster/reactor/lanes"
require "pando/cluster/replacements"
require "pando/cluster/rollout"
require "pando/cluster/service_supervisor"
require "pando/cluster/spawner"

module Pando
  module Cluster
    # Workers of one kind, with a lineage of molds of their own: what there is one of for each kind. Of a server's
    # pools the first one has the reactor and the listeners; most servers have no other.
    #
    # Owned by Pools, in the monitor.
    #
    # @api private
    class Pool
      include Brief
      extend Forwardable

      attr_reader :number, :name, :payload, :roster, :listeners, :lanes, :reactors, :generations, :rollout, :services,
                  :memory, :sizing, :external_signals, :throttles, :child_events, :poison

      # What there is one of for all: a pool is its child_events's cluster.
      def_delegators :@cluster, :shutdown, :reload, :drain, :inbox, :examiner, :tally, :dismiss

      # @param cluster [Monitor]
      # @param plan [Pools::Plan]
      # @param roster [Roster, Roster::View] of its own children
      # @param number [Integer] its place among the pools
      # @param common [Pools::Common]
      # @param ingress [Pools::Ingress]
      def initialize(cluster, plan, roster, number, common, ingress)
        @cluster = cluster
        @name = plan.name
        @payload = plan.payload
        @roster = roster
        @number = number
        @common = common
        @listeners = ingress.listeners
        @throttles = Throttling::RestartThrottles.new
        @poison = Poison.new(roster, payload.options)
        @child_events = ChildEvents.new(self, payload, common.oom)
        build_entrance(ingress.setup)
        build_generations(plan.policy)
        build_watch
      end

      def options = payload.options

      # Clients that wait at the listeners are to go elsewhere.
      def refuse_connections = listeners.refuse

      # It loads the application, for the first time.
      def boot = generations.begin_boot

      # @param purpose [Symbol] of a generation in another pool
      # @return [Child, nil] a mold of the same release that has booted from cold, and may be forked in its place
      def cold_mold_for(purpose)
        upcoming, current = [generations.upcoming, generations.current].map { |one| one if one&.forks? && !one.source }
        generation = { boot: current || upcoming, heal: current, reload: upcoming, reboot: current }.fetch(purpose)
        generation&.mold
      end

      # @return [Boolean] it is to share the boot of the first pool, which goes on still
      def waits? = shared? && !!@cluster.pools.first.generations.upcoming&.booting?

      # Called at each turn of the monitor's loop, whatever goes on.
      def enforce = @deadlines.enforce

      # @param seconds [Float] in which nobody could do anything
      def postpone(seconds) = @deadlines.postpone(seconds)

      # Called at each turn of the monitor's loop, unless the server stops.
      # @param ending [Boolean] it is about to
      def reconcile(ending)
        generations.reconcile
        @hot_sets.reconcile
        rollout.reconcile
        services.reconcile
        poison.reconcile
        ending ? external_signals.forget : external_signals.reconcile
        @replacements.reconcile unless ending
        @mold_releaser.reconcile(reload.awaits_mold?)
        memory.reconcile
        sizing.reconcile
        throttles.reconcile
      end

      # @return [Float] when a deadline passes
      def deadline = @deadlines.due

      # @return [Float, nil] when it must look again
      def due
        [@deadlines, memory, generations, rollout, external_signals, throttles, sizing, @mold_releaser].filter_map(&:due).min
      end

      # Another release serves: its settings are ours from now on.
      # @param policy [#threshold, #manual?, #choose]
      def renew(renewal, policy)
        before = options.workers
        payload.adopt(renewal)
        @spawner.command = renewal.command
        generations.policy = policy
        rollout.resize(options.workers) unless options.workers == before
      end

      # @return [Boolean] somebody serves in it
      def serving? = roster.ready_workers.any?

      # For a line of status.
      def summary = "#{roster.ready_workers.size} of #{rollout.size}"

      # In the order in which they are taken up: what refers to another comes after it.
      OWNERS = %i[throttles generations rollout services sizing].freeze

      # @param state [Upgrade::State::PoolState]
      def to_state(state) = OWNERS.each { |owner| public_send(owner).to_state(state) }
      def from_state(state) = OWNERS.each { |owner| public_send(owner).from_state(state) }

      private

      # Where nobody listens, direct mode has nothing to do.
      def build_entrance(setup)
        @lanes = setup ? Reactor::Lanes.new(setup, @common.oom) : Listening::DirectMode.new(roster, listeners)
        @spawner = Spawner.new(roster, @common.poller, listeners, options, @common.command, lanes,
                               pool: (name if @common.several))
        supervisor = Reactor::Supervisor.new(roster, @spawner, lanes, listeners, setup, throttles: throttles) if setup
        @reactors = supervisor || lanes
      end

      def build_generations(policy)
        @conditions = Generations::Conditions.new(self)
        @generations = Generations.new(roster, @spawner, policy, give_up, options,
                                       throttles: throttles, heard_at: reactors.method(:heard_at), origin: origin,
                                       gauge: @common.gauge, conditions: @conditions)
        @rollout = Rollout.new(roster, @spawner, generations, options, throttles: throttles)
        @replacements = Replacements.new(roster, generations, rollout, @conditions)
        @hot_sets = Generations::HotSets.new(roster, generations, options)
      end

      def shared? = options.shared && number.positive?
      def origin = ->(purpose) { @cluster.pools.first.cold_mold_for(purpose) if shared? }
      def give_up = ->(reason, detail) { @cluster.pools.give_up(self, reason, detail) }

      def build_watch
        @deadlines = Deadlines.new(roster, child_events, options)
        @services = ServiceSupervisor.new(roster, @spawner, generations, options, throttles: throttles)
        @external_signals = ExternalSignals.new(rollout, generations, options)
        @mold_releaser = Generations::MoldReleaser.new(self, @conditions, @common.gauge)
        build_memory
      end

      def build_memory
        @memory = Memory::Guard.new(roster, options, rollout, generations.method(:worker_wasted),
                                     gauge: @common.gauge, shortage: @common.shortage, relief: @common.relief)
        @sizing = Memory::Sizing.new(roster, rollout, options, @common.gauge)
      end
    end
  end
end
