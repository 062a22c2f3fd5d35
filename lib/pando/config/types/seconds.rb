# frozen_string_literal: true

require "pando/config/type"

module Pando
  class Config
    module Types
      # A duration in seconds, a Float. A String may also be "500ms", "30s", "2m" or "1h".
      #
      # @api private
      class Seconds < Type
        FACTORS = { "ms" => 0.001, "s" => 1, "" => 1, "m" => 60, "h" => 3600 }.freeze
        TEXT = /\A(\d{1,9}(?:\.\d{1,9})?) ?(ms|s|m|h|)\z/

        # The longest duration. Deadlines are stored in nanoseconds in 64 bits, which a year is far from filling.
        YEAR = 365.0 * 24 * 3600

        # @param zero [Boolean] whether 0 is allowed
        def initialize(zero: false)
          super()
          @zero = zero
        end

        def cast(value, **)
          seconds = seconds(value)
          seconds && fits?(seconds) ? seconds : invalid(value)
        end

        def expects
          "a number of seconds, #{@zero ? "0 or more" : "more than 0"}"
        end

        def write(value)
          value == value.to_i ? value.to_i.to_s : value.to_s
        end

        private

        def seconds(value)
          case value
          when Integer, Float, Rational then value.to_f
          when TEXT then Regexp.last_match(1).to_f * FACTORS.fetch(Regexp.last_match(2))
          end
        end

        # False for NaN too, because every comparison with it is false.
        def fits?(seconds)
          seconds <= YEAR && (@zero ? seconds >= 0 : seconds.positive?)
        end
      end
    end
  end
end
