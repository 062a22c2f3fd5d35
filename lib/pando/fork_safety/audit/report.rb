# frozen_string_literal: true

module Pando
  module ForkSafety
    module Audit
      # The result of one audit of one process.
      class Report
        # @return [Array<Finding>] the most severe first
        attr_reader :findings
        # @return [Array<Descriptor>] all of them, including the harmless ones
        attr_reader :descriptors
        # @return [Array<LiveThread, NativeThread>] those that a fork would lose, including the harmless ones
        attr_reader :threads
        # @return [Float] seconds it took
        attr_reader :seconds
        # @return [String, nil] why the descriptors could not be read
        attr_reader :error

        # @param verdicts [Array<Array(Finding, Descriptor)>]
        def initialize(verdicts:, descriptors: [], threads: [], seconds: 0.0, error: nil)
          @subjects = verdicts.to_h.compare_by_identity
          @findings = @subjects.keys.sort_by.with_index { |one, at| [Finding::SEVERITIES.index(one.severity), at] }
          @descriptors = descriptors
          @threads = threads
          @seconds = seconds
          @error = error
          freeze
        end

        # @return [Descriptor, LiveThread, NativeThread] what a finding of this report is about
        def subject_of(finding) = @subjects.fetch(finding)

        # @return [Hash{Symbol => Object}] for JSON
        def to_h
          { findings: findings.map(&:to_h), descriptors: descriptors.map(&:to_h), threads: threads.map(&:to_h),
            seconds: seconds, error: error }.compact
        end
      end
    end
  end
end
