# frozen_string_literal: true

require "pando/pages"
require "pando/pages/census"

module Pando
  module Pages
    # A Census as a table, as JSON or as a page with pictures.
    #
    # @api private
    module Report
      # @param census [Census] @param format [String] text, json, html
      # @return [String]
      def self.write(census, format)
        require "pando/pages/report/#{format}"
        case format
        when "text" then Text.new(census).to_s
        when "json" then Json.new(census).to_s
        when "html" then Html.new(census).to_s
        end
      end
    end
  end
end
