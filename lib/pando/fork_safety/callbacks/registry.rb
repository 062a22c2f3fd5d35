# frozen_string_literal: true

require "pando/fork_safety/callbacks/entry"

module Pando
  module ForkSafety
    module Callbacks
      # Who wants what around a fork, in the order in which they came. Read without a
      # lock: each change makes a new Hash.
      #
      # @api private
      class Registry
        def initialize
          @lock = Mutex.new
          @entries = {}.freeze
        end

        # @return [Array<Entry>]
        def entries = @entries.values

        # In the place of the one that has this key, or behind all others.
        #
        # @param entry [Entry]
        def put(entry)
          change { |entries| entries[entry.key] = entry }
        end

        # @return [Boolean] whether there was one
        def delete(key)
          known = include?(key)
          change { |entries| entries.delete(key) } if known
          known
        end

        def include?(key) = @entries.key?(key)

        private

        def change(&block)
          @lock.synchronize { @entries = @entries.dup.tap(&block).freeze }
          nil
        end
      end
    end
  end
end
