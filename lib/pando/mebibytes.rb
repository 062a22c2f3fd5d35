# frozen_string_literal: true

module Pando
  # Formats sizes for people, in events and reports.
  #
  # @api private
  module Mebibytes
    private

    # @param bytes [Integer, Float, nil]
    # @return [String, nil]
    def mebibytes(bytes) = bytes && format("%.1f MiB", bytes / 1_048_576.0)
  end
end
