# frozen_string_literal: true

require "pando/cluster/serializable"
require "pando/cluster/retired_generations"
require "pando/cluster/generation"
require "pando/cluster/generations/cold_boots"
require "pando/cluster/generations/reforks"

module Pando
  module Cluster
    class Generations
      # How Generations come through an upgrade of the monitor, during which none is on its way
      # or watched.
      #
      # @api private
      module Serialization
        # See Serializable.
        FIELDS = { newest: :integer, reforks: Reforks, cold_boots: ColdBoots, proven: :flag,
                   backoff: Throttling::Backoff, retired: RetiredGenerations }.freeze

        def self.included(generations)
          generations.extend(Serializable)
          generations.serialize(**FIELDS)
        end

        # @param state [Upgrade::State]
        def to_state(state)
          state.add("generations", **serialized_fields)
          lost_threads.to_state(state)
          current&.to_state(state)
        end

        def from_state(state)
          take_up(state.one("generations"))
          lost_threads.from_state(state)
          record = Generation::WORDS.filter_map { |word| state.any(word) }.first
          @current = Generation.taken_up(record, @roster) if record
        end
      end
    end
  end
end
