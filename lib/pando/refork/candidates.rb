# frozen_string_literal: true

require "pando/refork/warmth"

module Pando
  module Refork
    # Which worker becomes the next mold: the warmest. Reads the monitor's view of
    # its workers; anything will do that answers `requests`, `sample`,
    # `fork_safe?` and `excluded_as_source?` (excluded_as_source: its child failed as a mold
    # before). Busy or idle makes no difference, since a worker is promoted
    # between two requests.
    module Candidates
      # @param workers [Array] of generations that serve: a mold that has taken another one's place begins a
      #   generation and replaces nobody
      # @return [Object, nil] one of `workers`; the first of equals
      def self.best(workers) = Warmth.warmest(workers.select { |worker| worker.fork_safe? && !worker.excluded_as_source? })

      # @param chosen [Object] one of `workers`
      # @return [String] why it was, for an event
      def self.explain(chosen, workers)
        "#{workers.size > 1 ? "the warmest of #{workers.size}" : "the only one to choose from"}: #{Warmth.new(chosen)}"
      end
    end
  end
end
