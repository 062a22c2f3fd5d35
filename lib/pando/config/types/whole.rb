# frozen_string_literal: true

require "pando/config/types/ranged"

module Pando
  class Config
    module Types
      # A whole number in a range.
      #
      # @api private
      class Whole < Ranged
        def expects
          return "a whole number, #{@range.begin} or more" unless @range.end

          "a whole number from #{@range.begin} to #{@range.end}"
        end

        private

        def number(value)
          case value
          when Integer then value
          when /\A-?\d{1,18}\z/ then value.to_i
          end
        end
      end
    end
  end
end
