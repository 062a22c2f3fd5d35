# frozen_string_literal: true

require "pando/config/types/ranged"
require "pando/config/units"

module Pando
  class Config
    module Types
      # A size in bytes, an Integer. A String may also be "64KB", "1.5MB" or "2GB".
      # A kilobyte is 1024 bytes, as in `64.kb`.
      #
      # @api private
      class Bytes < Ranged
        FACTORS = { "" => 1, "k" => 1024, "m" => 1024**2, "g" => 1024**3 }.freeze
        TEXT = /\A(\d{1,15}(?:\.\d{1,9})?) ?(k|m|g|)(?:i?b)?\z/i

        def expects
          limits = @range.end ? "from #{write(@range.begin)} to #{write(@range.end)}" : "#{write(@range.begin)} or more"
          "a number of bytes, #{limits}"
        end

        def write(value)
          unit, factor = Units::BYTES.reverse_each.find { |_, bytes| (value % bytes).zero? && value.positive? }
          unit ? "#{value / factor}.#{unit}" : value.to_s
        end

        private

        def number(value)
          case value
          when Integer then value
          when TEXT then (Regexp.last_match(1).to_r * FACTORS.fetch(Regexp.last_match(2).downcase)).round
          end
        end
      end
    end
  end
end
