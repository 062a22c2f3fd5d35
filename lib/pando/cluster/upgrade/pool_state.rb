# frozen_string_literal: true

require "forwardable"
require "pando/cluster/upgrade/record"

module Pando
  module Cluster
    class Upgrade
      # What a state says of one pool. The records of the first one look as they do where there is no other.
      #
      # @api private
      class PoolState
        extend Forwardable

        def_delegators :@state, :roster, :keep, :take

        # @param state [State] @param pool [Integer]
        def initialize(state, pool)
          @state = state
          @pool = pool
        end

        def add(word, **fields) = @state.add(word, **fields, pool: (@pool if @pool.positive?))
        def all(word) = @state.all(word).select { |record| (record.read(:pool, :integer) || 0) == @pool }
        def any(word) = all(word).first
        def one(word) = any(word) || raise(Unreadable, "it has no record #{word}")
      end
    end
  end
end
