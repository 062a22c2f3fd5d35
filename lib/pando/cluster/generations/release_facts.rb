# frozen_string_literal: true

module Pando
  module Cluster
    class Generations
      # For a part of Generations that knows facts of the release that serves. They are forgotten when another release
      # serves, and come back if that one is rolled back. The constant FACTS names the variables, and #forget gives
      # each of them a new object.
      module ReleaseFacts
        # Purposes of generations that may be of another release.
        RELEASES = %i[boot reload].freeze

        # @param generation [Generation] that serves in all slots
        def established(generation)
          @facts_before = nil
          return unless RELEASES.include?(generation.purpose)

          @facts_before = self.class::FACTS.to_h { |name| [name, instance_variable_get(name)] }
          forget
        end

        # The generation that was established last is rolled back.
        def rolled_back
          @facts_before&.each { |name, value| instance_variable_set(name, value) }
          @facts_before = nil
        end
      end
    end
  end
end
