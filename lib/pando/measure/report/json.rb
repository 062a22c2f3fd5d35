# frozen_string_literal: true

require "json"

module Pando
  module Measure
    module Report
      # For programs. docs/measure.md has the fields.
      #
      # @api private
      class Json
        def initialize(result)
          @result = result
        end

        # @return [String]
        def to_s = "#{JSON.pretty_generate(@result.to_h)}\n"
      end
    end
  end
end
