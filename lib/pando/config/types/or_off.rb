# frozen_string_literal: true

require "pando/config/type"

module Pando
  class Config
    module Types
      # A value of another type, or nil for "off", which is `false` in a config
      # file and `off` on the command line.
      #
      #   OrOff.new(Seconds.new)
      #
      # @api private
      class OrOff < Type
        OFF = [false, "off", "false"].freeze

        # @param type [Type]
        def initialize(type)
          super()
          @type = type
        end

        # Refuses nil: it usually comes from an environment variable that is not
        # set, and rarely means "off".
        def cast(value, **options)
          return if OFF.include?(value)

          @type.cast(value, **options)
        rescue Invalid
          invalid(value)
        end

        def expects
          "#{@type.expects}, or false"
        end

        def write(value)
          value.nil? ? "false" : @type.write(value)
        end

        def export(value)
          value.nil? ? false : @type.export(value)
        end
      end
    end
  end
end
