# frozen_string_literal: true

require "pando/cluster/brief"
require "pando/cluster/pool"
require "pando/cluster/pools/child_event_router"
require "pando/cluster/pools/outage"
require "pando/cluster/pools/plan"
require "pando/cluster/pools/releases"
require "pando/events"

module Pando
  module Cluster
    # The pools of a server, one for each kind of worker, in the order in which they were declared. Which there are is
    # decided at the start. Where there are several, each event of one has its name.
    #
    # Owned by the monitor.
    #
    # @api private
    class Pools
      include Brief
      include Enumerable

      # @return [ChildEventRouter] who is told what happens to children
      attr_reader :child_event_router
      # @return [Generations, Releases] what a reload is a new one of
      attr_reader :releases

      # @param plans [Array<Plan>] @param roster [Roster] @param shutdown [Shutdown]
      # @yieldparam plan [Plan] @yieldparam roster [Roster, Roster::View] of its children @yieldparam number [Integer]
      # @yieldreturn [Pool]
      def initialize(plans, roster, shutdown)
        @shutdown = shutdown
        @pools = plans.map.with_index do |plan, number|
          yield plan, (plans.one? ? roster : roster.of(number)), number
        end
        @releases = several? ? Releases.new(self) : first.generations
        @child_event_router = ChildEventRouter.new(self)
        @outage = Outage.new(@shutdown)
        @unborn = []
        @started = false
      end

      def each(&block) = @pools.each(&block)
      def several? = @pools.size > 1
      def names = @pools.map(&:name)

      # @param child [Child]
      # @return [Pool] whose it is
      def of(child) = @pools.fetch(child.pool)

      # @param name [String] from anybody
      # @return [Pool, nil]
      def named(name) = find { |pool| pool.name == name }

      # What is told in the block is about this pool.
      # @param pool [Pool]
      def about(pool, &block) = several? ? Events.about(pool: pool.name, &block) : yield

      # @param pools [Enumerable<Pool>] those that are to boot, each as soon as it can
      def boot(pools = self)
        @unborn = pools.reject do |pool|
          about(pool) { pool.boot } unless pool.waits?
        end
      end

      # @return [Integer] workers that are wanted in all of them
      def workers = sum { |pool| pool.rollout.size }

      # @return [Hash{Symbol => Integer}] workers that serve requests and nodes that do jobs, as many as are wanted; a
      #   kind that there is none of is missing
      def sizes
        kinds = group_by { |pool| pool.options.jobs ? :nodes : :workers }
        %i[workers nodes].filter_map { |kind| [kind, kinds[kind].sum { |one| one.rollout.size }] if kinds[kind] }.to_h
      end

      # (see Pool#enforce)
      def enforce = each { |pool| about(pool) { pool.enforce } }

      # (see Pool#postpone)
      def postpone(seconds) = each { |pool| pool.postpone(seconds) }

      # (see Pool#reconcile)
      def reconcile(ending)
        boot(@unborn) if @unborn.any?
        @releases.reconcile if several?
        (@pools - @unborn).each { |pool| about(pool) { pool.reconcile(ending) } }
        @started = true if serve?
        @outage.look(select(&:serving?))
      end

      # Another release serves.
      # @param renewal [#command, #policy, #policy_of] whatever else its payloads take from it
      def renew(renewal)
        each do |pool|
          policy = pool.equal?(first) ? renewal.policy : renewal.policy_of(pool.name)
          about(pool) { pool.renew(renewal, policy) }
        end
      end

      # @return [Float] when a deadline passes
      def deadline = map(&:deadline).min

      # @return [Float, nil] when one of them must look again
      def due = filter_map(&:due).min

      # @return [Boolean] whether each of them has a generation that serves
      def serve? = all? { |pool| pool.generations.current }

      # @return [Boolean] whether each of them serves with as many workers as are wanted
      def complete? = serve? && all? { |pool| pool.roster.ready_workers.size >= pool.rollout.size }

      # Nobody serves in one of them, and a try to mend that has failed. At a start that is the end, for whoever has
      # started the server wants to know at once. Later the others serve on, and it is tried again.
      # @param pool [Pool] @param reason [String] @param detail [String, nil] a backtrace
      # @return [Boolean] whether the server stops
      def give_up(pool, reason, detail)
        others = @started && any?(&:serving?)
        if others
          @outage.tell(pool) { Events.emit("pool.failing", reason: reason) }
          return false
        end
        named = several? ? "#{pool.name}: #{reason}" : reason
        return @outage.bear(named, detail, first.options.give_up_after) if pool.generations.proven?

        @shutdown.fail(named, detail)
        true
      end

      # For a line of status.
      def summary
        return "#{first.summary} workers serve" unless several?

        "#{map { |pool| "#{pool.name}: #{pool.summary}" }.join(", ")} workers serve"
      end

      # @param state [Upgrade::State]
      def to_state(state)
        each do |pool|
          state.add("pool", name: pool.name)
          pool.to_state(state.part(pool.number))
        end
      end

      # One that the configuration has got since begins to boot, see Upgrade::Resumption.
      def from_state(state)
        @started = true
        each { |pool| state.part_of(pool.name)&.then { |part| pool.from_state(part) } }
      end
    end
  end
end
