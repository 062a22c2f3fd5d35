# frozen_string_literal: true

require "pando/fork_safety/finding"

module Pando
  module Doctor
    module Checks
      # What checks have in common: each is a class of its own, `new(evidence).findings`.
      #
      # @abstract
      class Check
        # @param evidence [Evidence]
        def initialize(evidence)
          @evidence = evidence
        end

        # @return [Array<ForkSafety::Finding>]
        def findings = raise(NoMethodError, "#{self.class} must find")

        private

        attr_reader :evidence

        def finding(kind, **facts) = ForkSafety::Finding.new(kind, **facts)

        # A library's own affair is told, but does not fail a build.
        # @param severity [Symbol, nil] in the application's own code; the kind's usual one without it
        def severity_of(location, severity = nil) = evidence.own?(location) ? severity : :note
      end
    end
  end
end
