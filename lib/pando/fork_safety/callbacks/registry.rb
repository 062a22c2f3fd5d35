# frozen_string_literal: true

require "pando/fork_safety/callbacks/entry"

module Pando
  module ForkSafety
    module Callbacks
      # The registered callbacks, in the order of registration. It is read without a lock,
      # because each change makes a new Hash.
      #
      # @api private
      class Registry
        def initialize
          @lock = Mutex.new
          @entries = {}.freeze
        end

        # @return [Array<Entry>]
        def entries = @entries.values

        # Replaces the entry that has this key, or appends a new one.
        #
        # @param entry [Entry]
        def put(entry)
          change { |entries| entries[entry.key] = entry }
        end

        # @return [Boolean] whether the key was registered
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
