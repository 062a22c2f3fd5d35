# frozen_string_literal: true

require "pando/fork_safety/finding/kinds"

module Pando
  module ForkSafety
    # One thing that a fork would break or has cost. The audit of a mold, the self-check, the library
    # table and `pando doctor` report findings. A value: it crosses processes as the Hash of {#to_h}.
    class Finding
      # From data loss and hangs down to what is only good to know.
      SEVERITIES = %i[error warning note].freeze

      # @return [Symbol] one of {KINDS}
      attr_reader :kind
      # @return [Symbol] one of {SEVERITIES}
      attr_reader :severity
      # @return [String] what it is about; the same in each run, without pids and descriptor numbers
      attr_reader :subject
      # @return [String, nil] "file:line" that made it
      attr_reader :location
      # @return [String] what was found, for people
      attr_reader :message
      # @return [String, nil] why it matters after a fork, and what to do
      attr_reader :advice
      # @return [Hash{Symbol => Object}] figures of this run, for JSON
      attr_reader :details

      # @param kind [Symbol] @param subject [String] @param message [String]
      # @param severity [Symbol, nil] nil: the kind's own
      # @raise [KeyError] the kind is not in the table
      # @raise [ArgumentError] the severity is unknown
      def initialize(kind, subject:, message:, location: nil, advice: nil, severity: nil, details: {})
        known = KINDS.fetch(kind)
        @kind = kind
        @severity = severity || known.severity
        raise ArgumentError, "no such severity: #{@severity.inspect}" unless SEVERITIES.include?(@severity)

        @subject = subject
        @message = message
        @location = location
        @advice = advice || known.advice
        @details = details
        freeze
      end

      # The same from run to run, so that a baseline recognizes old findings.
      # @return [String]
      def fingerprint = [kind, subject, location&.sub(/:\d+\z/, "")].compact.join(" ")

      # @return [Hash{Symbol => Object}] for JSON
      def to_h
        { kind: kind, severity: severity, subject: subject, location: location, message: message, advice: advice,
          details: details }.compact
      end

      # @return [String] one line
      def to_s = "#{severity}: #{message}#{" (#{location})" if location}"
    end
  end
end
