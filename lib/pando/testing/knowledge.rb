# frozen_string_literal: true

module Pando
  module Testing
    # What the fork-safety checks, as far as they are there, say about a new generation.
    #
    # @api private
    module Knowledge
      class << self
        # @param generation [Integer]
        # @return [Array<ForkSafety::Finding>]
        def findings(generation)
          [*(libraries if generation == 1), *audit]
        end

        private

        def libraries
          return unless available?("libraries")

          ForkSafety::Libraries.findings
        end

        def audit
          return unless available?("audit")

          ForkSafety::Audit.run.findings
        end

        def available?(name)
          require "pando/fork_safety/#{name}"
          true
        rescue LoadError => e
          raise unless e.path == "pando/fork_safety/#{name}"

          false
        end
      end
    end
  end
end
