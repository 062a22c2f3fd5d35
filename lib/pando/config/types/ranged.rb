# frozen_string_literal: true

require "pando/config/type"

module Pando
  class Config
    module Types
      # An Integer within a range. A subclass implements #number, which reads it and returns nil for anything else.
      #
      # @api private
      class Ranged < Type
        # @param range [Range<Integer>]
        def initialize(range)
          super()
          @range = range
        end

        def cast(value, **)
          number = number(value)
          number && @range.cover?(number) ? number : invalid(value)
        end
      end
    end
  end
end
