# frozen_string_literal: true

require "pando/config/type"

module Pando
  class Config
    module Types
      # True or false.
      #
      # @api private
      class Truth < Type
        TEXTS = { "true" => true, "on" => true, "false" => false, "off" => false }.freeze

        def cast(value, **)
          value = TEXTS.fetch(value, value)
          [true, false].include?(value) ? value : invalid(value)
        end

        def expects
          "true or false"
        end
      end
    end
  end
end
