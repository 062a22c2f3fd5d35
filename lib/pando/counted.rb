# frozen_string_literal: true

module Pando
  # Formats numbers of things for people, in events and reports.
  #
  # @api private
  module Counted
    private

    # @param number [Integer, String] @param noun [String] in the singular
    # @return [String] "1 request", "2 requests"
    def counted(number, noun) = "#{number} #{noun}#{"s" unless number.to_s == "1"}"
  end
end
