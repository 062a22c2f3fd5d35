# frozen_string_literal: true

require "pando/config/type"
require "pando/config/types/bytes"
require "pando/config/types/whole"

module Pando
  class Config
    module Types
      # What a new worker may be given before it serves: true for the default, false for nothing, or
      # `{ bytes: 64.mb, milliseconds: 30 }`. As text "64mb,30".
      #
      # @api private
      class Prefault < Type
        KEYS = { bytes: Bytes.new(4096..), milliseconds: Whole.new(1..10_000) }.freeze
        NAMES = { "on" => true, "true" => true, "off" => false, "false" => false }.freeze
        LIST = /\A[^,]+,[^,]+\z/
        # Of what is not said.
        DEFAULT = { bytes: 64 * (1024**2), milliseconds: 30 }.freeze

        def cast(value, **)
          case value
          when "on", "off", "true", "false", true, false then NAMES.fetch(value.to_s)
          when LIST then read(KEYS.keys.zip(value.split(",")).to_h)
          when Hash then read(value)
          else invalid(value)
          end
        end

        def expects = "true, false or a Hash of bytes: and milliseconds:"

        def write(value)
          return value.inspect unless value.is_a?(Hash)

          "{ #{value.map { |key, one| "#{key}: #{KEYS.fetch(key).write(one)}" }.join(", ")} }"
        end

        def text(value) = value.is_a?(Hash) ? value.values_at(*KEYS.keys).join(",") : super

        private

        def read(hash)
          wrong = hash.keys.find { |key| !KEYS.key?(key) }
          invalid(hash, " There is no #{wrong}:.#{Suggestion.for(wrong, KEYS.keys)}") if wrong

          DEFAULT.merge(hash.to_h { |key, value| [key, cast_one(key, value, hash)] }).freeze
        end

        def cast_one(key, value, hash)
          KEYS.fetch(key).cast(value)
        rescue Invalid => e
          invalid(hash, " #{key}: #{e.message}")
        end
      end
    end
  end
end
