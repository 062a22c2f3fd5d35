# frozen_string_literal: true

require "pando/config/types/whole"

module Pando
  class Config
    module Types
      # How many workers: a whole number, or :auto for one per CPU.
      #
      # @api private
      class Workers < Whole
        def cast(value, **)
          return :auto if [:auto, "auto"].include?(value)

          super
        end

        def expects
          "#{super}, or auto"
        end

        def export(value)
          value == :auto ? "auto" : value
        end
      end
    end
  end
end
