# frozen_string_literal: true

require "pando/config/type"

module Pando
  class Config
    module Types
      # True or false.
      #
      # @api private
      class Truth < Type
        def cast(value, **)
          [true, false].include?(value) ? value : invalid(value)
        end

        def expects
          "true or false"
        end
      end
    end
  end
end
