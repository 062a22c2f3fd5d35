# frozen_string_literal: true

require "pando/fork_safety/finding"

module Pando
  module Doctor
    # Turns the evidence of an examination into findings. Runs in the command's process.
    module Checks
      # The base of all checks: a check is a class, used as `new(evidence).findings`.
      class Check
        def initialize(evidence)
          @evidence = evidence
        end

        private

        attr_reader :evidence

        def finding(kind, **facts) = ForkSafety::Finding.new(kind, **facts)

        # Findings inside a library are notes: the user cannot fix them, so they must not fail a build.
        # @param severity [Symbol, nil] for the application's own code; nil: the kind's default
        def severity_of(location, severity = nil) = evidence.own?(location) ? severity : :note
      end

      require "pando/doctor/checks/descriptors"
      require "pando/doctor/checks/inheritance"
      require "pando/doctor/checks/serving"

      ALL = [Descriptors, Inheritance, Requests, Serving].freeze

      # @return [Array<ForkSafety::Finding>] several checks may report the same fault
      def self.run(evidence) = ALL.flat_map { |check| check.new(evidence).findings }
    end
  end
end
