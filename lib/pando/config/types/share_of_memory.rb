# frozen_string_literal: true

require "pando/config/types/bytes"

module Pando
  class Config
    module Types
      # A size in bytes, or a share of the available memory: "80%", `80.percent`.
      #
      # @api private
      class ShareOfMemory < Bytes
        SHARE = /\A(\d{1,3}(?:\.\d{1,9})?) ?%\z/

        # @param value [Integer, String] as #cast returned it
        # @param available [Integer] bytes
        # @return [Integer] bytes
        def self.of(value, available)
          value.is_a?(Integer) ? value : (available * value[SHARE, 1].to_r / 100).to_i
        end

        def cast(value, **)
          return super unless value.is_a?(String) && SHARE.match?(value)

          (0r..100r).cover?(value[SHARE, 1].to_r) && value.to_f.positive? ? value.delete(" ") : invalid(value)
        end

        def expects
          "#{super}, or a share of the memory such as 80.percent"
        end

        def write(value)
          value.is_a?(Integer) ? super : "#{value.delete_suffix("%")}.percent"
        end
      end
    end
  end
end
