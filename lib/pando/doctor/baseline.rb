# frozen_string_literal: true

require "json"
require "pando/errors"

module Pando
  module Doctor
    # A file of known findings, kept with the application. A finding is recognized by its fingerprint, which has no line
    # number, so that an edit above it does not make it new.
    class Baseline
      SCHEMA = 1

      # @return [Baseline] without any finding
      def self.empty = new([])

      # @param path [String]
      # @return [Baseline]
      # @raise [UsageError]
      def self.read(path)
        content = JSON.parse(File.read(path, encoding: Encoding::UTF_8))
        list = content["findings"] if content.is_a?(Hash) && content["schema"] == SCHEMA
        raise UsageError, "--baseline: #{path} was not written by pando doctor" unless list.is_a?(Array)

        new(list.filter_map { |one| one["fingerprint"] if one.is_a?(Hash) })
      rescue JSON::ParserError
        raise UsageError, "--baseline: #{path} is not JSON"
      rescue SystemCallError => e
        raise UsageError, "--baseline: #{e.message}. Write it with --write-baseline"
      end

      # @param path [String] @param findings [Array<ForkSafety::Finding>]
      # @raise [UsageError]
      def self.write(path, findings)
        known = findings.reject { |one| one.severity == :note }.map do |one|
          { fingerprint: one.fingerprint, kind: one.kind, message: one.message }
        end
        File.write(path, "#{JSON.pretty_generate(schema: SCHEMA, findings: known.uniq { |one| one[:fingerprint] })}\n")
      rescue SystemCallError => e
        raise UsageError, "--write-baseline: #{e.message}"
      end

      def initialize(fingerprints)
        @fingerprints = fingerprints
      end

      # @param finding [ForkSafety::Finding]
      def include?(finding) = @fingerprints.include?(finding.fingerprint)
    end
  end
end
