# frozen_string_literal: true

require "pando/cluster/child"

module Pando
  module Cluster
    # All children that are ordered and not yet reaped, each on a seat of the scoreboard. Owned by the monitor.
    class Roster
      # Queries on a list of children: all of them, or those of one pool.
      module Selection
        include Enumerable

        # Asks the workers of a generation that are not ready yet to leave.
        def call_off(generation, reason)
          workers.each { |worker| worker.call_off(reason) if worker.generation == generation && worker.starting? }
        end

        def workers = select(&:worker?)
        # Without those that leave and keep their connections, maybe for hours: others serve in their slots.
        def staying_workers = select { |child| child.worker? && !child.draining? }
        def molds = select(&:mold?)
        def services = select(&:service?)
        def reactor = find(&:reactor?)
        def ready_workers = select { |child| child.worker? && child.ready? }
        # @return [Integer] of each worker; the most, while a reload changes the number
        def threads = workers.map(&:threads).max || 1
        def by_pid(pid) = find { |child| child.pid == pid }
        def size = count
        def empty? = none?
      end

      include Brief
      include Selection

      # Enough for the largest cluster twice over, as during a rollout.
      SEATS = 4096
      # The reactor's, one for each thread of a worker.
      LANES = SEATS / 4
      # The roles on the scoreboard, by number.
      ROLES = [*Message::ROLES, :reactor].freeze

      attr_reader :scoreboard

      def initialize(scoreboard = Sys::Scoreboard.create(SEATS))
        @scoreboard = scoreboard
        @children = {}
        @slots = Hash.new { |slots, slot| slots[slot] = [] } # a turn of the loop asks for each slot
      end

      def each(&block) = @children.each_value(&block)
      def [](seat) = @children[seat]
      def in_slot(slot) = @slots.fetch(slot, []).select(&:worker?)

      def of(pool) = View.new(self, pool)
      def everybody = self

      def admit(role, slot, generation, link, source, pool = 0)
        seat = free_seat(source) or raise Pando::Error, "all #{scoreboard.seats} seats are taken"
        row = scoreboard.use(seat)
        row.reset # not earlier: the row's former owner could be asked about until now
        enter(Child.new(role, seat, slot, generation, link, row, source, pool))
      end

      def to_state(state)
        state.add("scoreboard", descriptor: state.keep(scoreboard))
        each { |child| child.to_state(state) }
      end

      def from_state(state)
        state.roster = self
        state.all("child").each do |record|
          child = Child.taken_up(record, state, scoreboard)
          raise Upgrade::Unreadable, "two children have seat #{child.seat}" if @children.key?(child.seat)

          enter(child)
        end
      end

      def dismiss(child)
        child.source.fork_given_up(child.seat) if child.ordered? && child.source
        child.become_gone
        @children.delete(child.seat)
        @slots[child.slot].delete(child)
      end

      # The children of one pool. The parts of a pool do not know that there are others.
      class View
        include Brief
        extend Forwardable
        include Selection

        def_delegators :@roster, :scoreboard, :dismiss

        def initialize(roster, pool)
          @roster = roster
          @pool = pool
        end

        def each
          @roster.each { |child| yield child if within?(child) }
        end

        def [](seat) = @roster[seat]&.then { |child| child if include?(child) }
        def in_slot(slot) = @roster.in_slot(slot).select { |child| within?(child) }

        # (see Roster#admit)
        def admit(role, slot, generation, link, source) = @roster.admit(role, slot, generation, link, source, @pool)

        def everybody = @roster

        private

        def within?(child) = @pool === child.pool # rubocop:disable Style/CaseEquality -- or a Range
      end

      private

      # The lowest one. If the source's next order had the seat of one that was given up, a late report on that one
      # would count for it.
      def free_seat(source)
        free = (0...scoreboard.seats).lazy.reject { |number| @children.key?(number) }
        free.find { |number| !source&.fork_given_up?(number) } || free.first
      end

      def enter(child)
        @slots[child.slot] << child
        @children[child.seat] = child
      end
    end
  end
end
