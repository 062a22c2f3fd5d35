# frozen_string_literal: true

require "pando/refork/warmth"

module Pando
  module Refork
    # Which worker becomes the next mold: the warmest. Reads the monitor's view of
    # its workers; anything will do that answers `requests`, `sample`,
    # `generation`, `fork_safe?` and `barred?` (barred: its child failed as a mold
    # before). Busy or idle makes no difference, since a worker is promoted
    # between two requests.
    module Candidates
      # @param workers [Array] see above
      # @param generation [Integer, nil] the only one that counts; nil: each of them is of one that serves, for a mold
      #   that has taken another one's place begins a generation and replaces nobody
      # @param at_least [Integer] requests it must have served
      # @return [Object, nil] one of `workers`; the first of equals
      def self.best(workers, generation: nil, at_least: 0)
        Warmth.warmest(workers.select { |worker| eligible?(worker, generation, at_least) })
      end

      def self.eligible?(worker, generation, at_least)
        return false unless generation.nil? || worker.generation == generation

        worker.fork_safe? && !worker.barred? && worker.requests >= at_least
      end
      private_class_method :eligible?

      # @param chosen [Object] one of `workers`
      # @return [String] why it was, for an event
      def self.explain(chosen, workers)
        "#{workers.size > 1 ? "the warmest of #{workers.size}" : "the only one"}: #{Warmth.new(chosen)}"
      end
    end
  end
end
