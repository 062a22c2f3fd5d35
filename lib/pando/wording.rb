# frozen_string_literal: true

module Pando
  # Writes numbers and sizes for people, in events and reports.
  #
  # @api private
  module Wording
    private

    # @param number [Integer, String] @param noun [String] in the singular
    # @return [String] "1 request", "2 requests"
    def counted(number, noun) = "#{number} #{noun}#{"s" unless number.to_s == "1"}"

    # @param bytes [Integer, Float, nil]
    # @return [String, nil]
    def mebibytes(bytes) = bytes && format("%.1f MiB", bytes / 1_048_576.0)
  end
end
