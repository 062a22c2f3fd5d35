# frozen_string_literal: true

module Pando
  module Cluster
    class Pools
      # The new generations of all pools in a reload, seen by Reload as one generation. All molds boot before any worker
      # is replaced. The first pool, which has the clients, waits until the canaries of the others have passed. If the
      # new generation of one pool fails, the others are rolled back as far as possible. Owned by Pools, in the monitor.
      class Release
        # The canary has passed.
        PROVED = %i[rolling current kept retired].freeze

        def initialize(pools, command, listeners)
          @pools = pools
          @command = command
          @listeners = listeners
          @members = {}
          @served = []
        end

        # A pool that shares the first one's boot joins later, and may have begun to refork meanwhile.
        def begin
          missing = @pools.reject { |pool| @members.key?(pool) }
          missing.each do |pool|
            @pools.about(pool) { join(pool) } unless pool.waits? || pool.generations.upcoming || @absent
          end
        end

        def proceed
          note_current
          self.begin
          @members.each do |pool, generation|
            @pools.about(pool) { generation.go_on } if generation.ready? && may_go_on?(pool)
          end
        end

        def untried=(reason)
          @untried = reason
          @members.each_value { |generation| generation.untried = reason }
        end

        def unproven = @members.each_value.filter_map(&:unproven).first

        def number = @members[@pools.first]&.number

        def state
          note_current
          return :refused if @absent
          return @members[lost].state if lost

          (@pools.to_a - @served).empty? ? :current : :booting
        end

        # @return [String, nil] why it failed
        def reason = lost && [lost.name, @absent ? @obstacle : @members[lost].reason].compact.join(": ")

        # @return [Pool, nil] the pool whose generation failed
        def lost = @absent || @members.find { |pool, generation| lost?(generation, @served.include?(pool)) }&.first

        def roll_back(reason)
          @members.except(lost).each do |pool, generation|
            @pools.about(pool) { pool.generations.withdraw(generation, reason) }
          end
        end

        private

        # The kernel may refuse the process.
        def join(pool)
          @members[pool] = reload(pool).tap(&:hold)
        rescue Pando::Error => e
          @absent = pool
          @obstacle = e.message
        end

        def reload(pool)
          listeners = pool.serves? ? @listeners : []
          pool.generations.reload(@command, listeners).tap { |generation| generation.untried = @untried }
        end

        # Remembers the pools that have served: their molds may be lost since.
        def note_current
          @served |= @members.select { |_, generation| generation.current? }.keys
        end

        def lost?(generation, served)
          %i[discarded refused].include?(generation.state) || (generation.state == :retired && !served)
        end

        def may_go_on?(pool)
          return false if @members.size < @pools.count

          others = @members.except(pool).each_value
          return others.none?(&:booting?) unless pool.equal?(@pools.first)

          others.all? { |one| PROVED.include?(one.state) }
        end
      end
    end
  end
end
