# frozen_string_literal: true

module Pando
  module Measure
    # A Result as text, as JSON or as a page with a picture.
    #
    # @api private
    module Report
      FORMATS = %w[text json html].freeze

      # @param result [Result] @param format [String] one of FORMATS
      # @return [String]
      def self.write(result, format)
        require "pando/measure/report/#{format}"
        case format
        when "text" then Text.new(result).to_s
        when "json" then Json.new(result).to_s
        when "html" then Html.new(result).to_s
        end
      end
    end
  end
end
