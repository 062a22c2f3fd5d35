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

      # The sizes from which a finding is reported. docs/lazy-state.md lists them.
      module Thresholds
        # Bytes that one line keeps, for a note.
        NOTE = 4096
        # Bytes for a warning: each worker has to build that much, and does not share it.
        WARNING = 256 * 1024
        # Loaded files for a warning.
        FILES = 20
        # Methods that a line outside of the application defines, for a note.
        METHODS = 10

        # @return [Symbol] the severity for state that was built once
        def self.severity(bytes) = bytes >= WARNING ? :warning : :note

        # @return [String] for a human
        def self.size(bytes)
          return "#{bytes} bytes" if bytes < 1024

          value, unit = bytes < 1024 * 1024 ? [bytes / 1024.0, "KiB"] : [bytes / 1_048_576.0, "MiB"]
          format(value < 10 ? "%<value>.1f %<unit>s" : "%<value>.0f %<unit>s", value: value, unit: unit)
        end

        # @return [String] "1 file", "12,345 files"
        def self.count(number, noun)
          "#{number.to_s.gsub(/(?<=\d)(?=(?:\d{3})+\z)/, ",")} #{noun}#{"s" unless number == 1}"
        end
      end
    end
  end
end
