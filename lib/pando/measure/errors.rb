# frozen_string_literal: true

require "pando/errors"

module Pando
  module Measure
    # Nothing could be measured; the message says why, and what to do. The command exits with status 2.
    class NotMeasured < Error
      # @param subjects [Array<Subject>] that have failed
      # @param summary [String]
      # @return [NotMeasured] with the end of their output, and what to do about it
      def self.because_of(subjects, summary)
        said = subjects.reject { |subject| subject.last_words.empty? }.flat_map do |subject|
          [*("Output of #{subject.name}:" if subjects.size > 1), subject.last_words]
        end
        advice = subjects.filter_map(&:advice).uniq
        new(["#{subjects.map(&:name).join(" and ")}: #{summary}", *advice, *said].join("\n"))
      end
    end
  end
end
