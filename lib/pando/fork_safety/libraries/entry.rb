# frozen_string_literal: true

require "pando/fork_safety/finding"

module Pando
  module ForkSafety
    module Libraries
      # What is known of one loaded library in the version that is loaded. A value.
      class Entry
        # From what needs nothing to what nobody knows.
        VERDICTS = %i[fine handled limits_reforking refused unknown].freeze

        # @return [String] the gem's name
        attr_reader :name
        # @return [String, nil]
        attr_reader :version
        # @return [Symbol] :fine (it copes by itself), :handled (Pando does what it needs), :limits_reforking (a worker
        #   that has used it is not promoted), :refused (no worker that uses it is promoted until you do what
        #   {advice} says) or :unknown
        attr_reader :verdict
        # @return [String] what happens at a fork, for a human
        attr_reader :note
        # @return [String, nil] what you must do: a line for the config file, mostly
        attr_reader :advice
        # @return [String, nil] where that is written
        attr_reader :source

        # @param library [Library] a loaded one
        # @return [Entry]
        def self.of(library)
          version = library.version
          rule = library.rule(version)
          return new(library.name, version, rule.verdict, rule.note, rule.advice, rule.source) if rule

          new(library.name, version, :unknown, "Nothing is known of this version.")
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

        # @return [Hash{Symbol => String}] what JSON knows
        def to_h
          { name: name, version: version, verdict: verdict, note: note, advice: advice, source: source }.compact
        end

        # @return [String] name and version
        def to_s = [name, version].compact.join(" ")
      end
    end
  end
end
