# frozen_string_literal: true

require "pando/fork_safety/finding"

module Pando
  module ForkSafety
    module Libraries
      # What Pando knows about the loaded version of one library. A value.
      class Entry
        # From libraries that need nothing to unknown ones.
        VERDICTS = %i[fine handled limits_reforking refused unknown].freeze

        # @return [String] the gem's name
        attr_reader :name
        # @return [String, nil]
        attr_reader :version
        # @return [Symbol] :fine (handles a fork by itself), :handled (Pando prepares it), :limits_reforking (Pando does
        #   not promote a worker that has used it), :refused (Pando promotes no worker that uses it until you do what
        #   {advice} says) or :unknown
        attr_reader :verdict
        # @return [String] what happens at a fork, for people
        attr_reader :note
        # @return [String, nil] what to do: usually a line for the config file
        attr_reader :advice
        # @return [String, nil] the source of this knowledge
        attr_reader :source

        # @param library [Library] a loaded library
        # @return [Entry]
        def self.of(library)
          version = library.version
          rule = library.rule(version)
          return new(library.name, version, rule.verdict, rule.note, rule.advice, rule.source) if rule

          new(library.name, version, :unknown, "Pando knows nothing about this version.")
        end

        # @param verdict [Symbol] one of {VERDICTS}
        def initialize(name, version, verdict, note, advice = nil, source = nil)
          @name = name
          @version = version&.to_s
          @verdict = verdict
          @note = note
          @advice = advice
          @source = source
          freeze
        end

        # @return [Finding, nil]
        def finding
          kind = { refused: :library_refuses_refork, unknown: :library_unknown }[verdict] or return

          Finding.new(kind, subject: name, message: "#{self}: #{note}", advice: advice,
                            details: { version: version, source: source }.compact)
        end

        # @return [Hash{Symbol => String}] for JSON
        def to_h
          { name: name, version: version, verdict: verdict, note: note, advice: advice, source: source }.compact
        end

        # @return [String] name and version
        def to_s = [name, version].compact.join(" ")
      end
    end
  end
end
