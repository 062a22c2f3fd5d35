# frozen_string_literal: true

require "forwardable"
require "pando/cluster/brief"
require "pando/cluster/roster/selection"

module Pando
  module Cluster
    class Roster
      # The children of one pool, as its parts see them: they do not know that there are others.
      #
      # @api private
      class View
        include Brief
        extend Forwardable
        include Selection

        def_delegators :@roster, :scoreboard, :dismiss

        # @param roster [Roster]
        # @param pool [Integer]
        def initialize(roster, pool)
          @roster = roster
          @pool = pool
        end

        def each
          @roster.each { |child| yield child if child.pool == @pool }
        end

        # @return [Child, nil]
        def [](seat) = @roster[seat]&.then { |child| child if child.pool == @pool }
        def size = count
        def empty? = none?

        # (see Roster#admit)
        def admit(role, slot, generation, link, source)
          @roster.admit(role, slot, generation, link, source, @pool)
        end

        # @return [Roster] with the children of all pools
        def everybody = @roster
      end
    end
  end
end
