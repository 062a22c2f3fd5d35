# frozen_string_literal: true

module Bench
  # Figures of several rounds.
  module Statistics
    module_function

    # @param values [Array<Numeric>] at least one
    # @return [Float]
    def median(values)
      sorted = values.sort
      (sorted[(sorted.size - 1) / 2] + sorted[sorted.size / 2]) / 2.0
    end

    # @param values [Array<Numeric>]
    # @return [Float] half the distance between the largest and the smallest value, as a share of the median
    def spread(values) = (values.max - values.min) / 2.0 / median(values)
  end
end
