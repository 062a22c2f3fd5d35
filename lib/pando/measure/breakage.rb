# frozen_string_literal: true

require "pando/counted"

module Pando
  module Measure
    # Detects a broken application: one that answers half or more of its requests with 5xx, so that the figures of the
    # rest mean nothing. Made from the answers of the first pass, in the process of the command.
    #
    # @api private
    class Breakage
      include Counted

      UNKNOWN = "See its output or its log for the reason."
      private_constant :UNKNOWN

      # @param answers [Hash{Subject => Array<Client::Answer>}] to the different requests
      def initialize(answers)
        @tried = answers.values.first.size
        @failed = answers.transform_values { |given| given.select(&:server_error?).map(&:request) }
      end

      # @return [Boolean]
      def any? = number.positive? && number * 2 >= @tried

      # @return [String] for the reader of the report
      def to_s
        verb = number == 1 ? "was" : "were"
        "#{number} of #{counted(@tried, "different request")} #{verb} answered with 5xx in the first pass#{sides}: " \
          "the application is broken here, and the figures cover only the remaining requests. #{advice}"
      end

      private

      def number = @failed.values.flatten.uniq.size

      def sides
        return if @failed.one? || @failed.values.map(&:size).uniq.one?

        " (#{@failed.map { |subject, requests| "#{subject.name} #{requests.size}" }.join(", ")})"
      end

      def advice
        known = @failed.filter_map { |subject, requests| subject.advice if requests.any? }.uniq
        known.empty? ? UNKNOWN : known.join(" ")
      end
    end
  end
end
