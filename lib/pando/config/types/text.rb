# frozen_string_literal: true

require "pando/config/type"

module Pando
  class Config
    module Types
      # A String that matches a pattern.
      #
      # @api private
      class Text < Type
        attr_reader :expects

        # @param expects [String] describes the text: "the path of a file"
        # @param pattern [Regexp] what it must match
        def initialize(expects, pattern)
          super()
          @expects = expects
          @pattern = pattern
        end

        def cast(value, **)
          text = value.is_a?(Symbol) ? value.name : value
          text.is_a?(String) && text.valid_encoding? && @pattern.match?(text) ? text : invalid(value)
        end
      end
    end
  end
end
