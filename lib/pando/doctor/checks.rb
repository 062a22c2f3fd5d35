# frozen_string_literal: true

require "pando/fork_safety/finding"

module Pando
  module Doctor
    # What is made of the evidence. Each check is a class of its own: `new(evidence).findings`.
    module Checks
      # What checks have in common.
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
        def severity_of(location) = evidence.own?(location) ? nil : :note
      end
    end
  end
end

require "pando/doctor/checks/descriptors"
require "pando/doctor/checks/threads"
require "pando/doctor/checks/locks"
require "pando/doctor/checks/endings"
require "pando/doctor/checks/signals"
require "pando/doctor/checks/copies"
require "pando/doctor/checks/growth"
require "pando/doctor/checks/serving"
require "pando/doctor/checks/sections"

module Pando
  module Doctor
    module Checks
      ALL = [Descriptors, Threads, Locks, Endings, Signals, Copies, Growth, Serving, Sections].freeze

      # @return [Array<ForkSafety::Finding>] each fault once
      def self.run(evidence)
        ALL.flat_map { |check| check.new(evidence).findings }
      end
    end
  end
end
