# frozen_string_literal: true

module Bench
  # What is made of several rounds.
  module Statistics
    module_function

    # @param values [Array<Numeric>] at least one
    # @return [Float]
    def median(values)
      sorted = values.sort
      (sorted[(sorted.size - 1) / 2] + sorted[sorted.size / 2]) / 2.0
    end

    # @param values [Array<Numeric>]
    # @return [Float] half of the distance between the largest and the smallest, as a share of the median
    def spread(values) = (values.max - values.min) / 2.0 / median(values)
  end
end
