# frozen_string_literal: true

require "pando/fork_safety/finding/kinds"

module Pando
  module ForkSafety
    # One thing that a fork would break, or that a fork has cost: what the audit of a mold,
    # the self-check, the knowledge of libraries and `pando doctor` report. A value: it crosses
    # processes as the Hash of {#to_h}.
    class Finding
      # From what loses data or hangs to what is only good to know.
      SEVERITIES = %i[error warning note].freeze

      # @return [Symbol] one of {KINDS}
      attr_reader :kind
      # @return [Symbol] one of {SEVERITIES}
      attr_reader :severity
      # @return [String] what it is about, the same in each run: no pid, no descriptor's number
      attr_reader :subject
      # @return [String, nil] "file:line" that made it
      attr_reader :location
      # @return [String] what happens, for a human
      attr_reader :message
      # @return [String, nil] the change that would mend it
      attr_reader :advice
      # @return [Hash{Symbol => Object}] figures of this run, which JSON knows
      attr_reader :details

      # @param kind [Symbol] @param subject [String] @param message [String]
      # @param severity [Symbol, nil] the kind's own without it
      # @raise [KeyError] for a kind that is not in the table
      # @raise [ArgumentError] for an unknown severity
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

      # What stays the same from run to run: by it a baseline recognizes old findings.
      # @return [String]
      def fingerprint = [kind, subject, location&.sub(/:\d+\z/, "")].compact.join(" ")

      # @return [Hash{Symbol => Object}] what JSON knows
      def to_h
        { kind: kind, severity: severity, subject: subject, location: location, message: message, advice: advice,
          details: details }.compact
      end

      # @return [String] one line
      def to_s = "#{severity}: #{message}#{" (#{location})" if location}"
    end
  end
end
