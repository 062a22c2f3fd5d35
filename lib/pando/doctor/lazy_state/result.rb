# frozen_string_literal: true

require "json"
require "pando/fork_safety/finding"

module Pando
  module Doctor
    module LazyState
      # Findings and figures. A child sends them to its parent as JSON.
      class Result
        # @return [Array<ForkSafety::Finding>] the largest first
        attr_reader :findings
        # @return [Hash{Symbol => Object}] tables, ready for JSON
        attr_reader :figures

        # @param text [String]
        # @return [Result] the one that {#to_json} wrote
        def self.parse(text)
          known = JSON.parse(text, symbolize_names: true)
          new(known[:findings].map { |finding| revive(finding) }, known[:figures])
        end

        # @param figure [Hash]
        # @return [ForkSafety::Finding]
        def self.revive(figure)
          kind, severity = %i[kind severity].map { |name| figure.delete(name) }
          ForkSafety::Finding.new(ForkSafety::Finding::KINDS.keys.find { |key| key.name == kind },
                                  severity: ForkSafety::Finding::SEVERITIES.find { |one| one.name == severity },
                                  **figure)
        end
        private_class_method :revive

        def initialize(findings, figures)
          @findings = findings
          @figures = figures
        end

        # @return [String]
        def to_json(*) = JSON.generate({ findings: findings.map(&:to_h), figures: figures })
      end
    end
  end
end
