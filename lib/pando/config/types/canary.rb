# frozen_string_literal: true

require "pando/config/type"
require "pando/config/types/seconds"
require "pando/config/types/whole"

module Pando
  class Config
    module Types
      # What a new generation's first worker must do before the others are replaced: :auto, false for nothing, or
      # `{ requests: 20, seconds: 10, longest: 30 }`. As text "20,10,30".
      #
      # @api private
      class Canary < Type
        KEYS = { requests: Whole.new(1..1_000_000), seconds: Seconds.new(zero: true), longest: Seconds.new }.freeze
        NAMES = { "auto" => :auto, "off" => false, "false" => false }.freeze
        LIST = /\A[^,]+,[^,]+,[^,]+\z/
        # Of what is not said.
        DEFAULT = { requests: 20, seconds: 10.0, longest: 30.0 }.freeze

        def cast(value, **)
          case value
          when "auto", "off", "false", :auto, false then NAMES.fetch(value.to_s)
          when LIST then read(KEYS.keys.zip(value.split(",")).to_h, value)
          when Hash then read(value)
          else invalid(value)
          end
        end

        def expects = "auto, false or a Hash of requests:, seconds: and longest:"

        def write(value)
          return value.inspect unless value.is_a?(Hash)

          "{ #{value.map { |key, one| "#{key}: #{KEYS.fetch(key).write(one)}" }.join(", ")} }"
        end

        def text(value) = value.is_a?(Hash) ? value.values_at(*KEYS.keys).join(",") : super

        def export(value) = value.is_a?(Symbol) ? value.name : value

        private

        def read(hash, written = hash)
          wrong = hash.keys.find { |key| !KEYS.key?(key) }
          invalid(written, " There is no #{wrong}:.#{Suggestion.for(wrong, KEYS.keys)}") if wrong

          read = hash.to_h { |key, value| [key, cast_one(key, value, written)] }
          read[:longest] ||= [DEFAULT[:longest], (read[:seconds] || DEFAULT[:seconds]) * 2].max
          in_order(DEFAULT.merge(read), written)
        end

        def cast_one(key, value, written)
          KEYS.fetch(key).cast(value)
        rescue Invalid => e
          invalid(written, " #{key}: #{e.message}#{" Write canary: false for a rollout without one." if zero?(value)}")
        end

        # A proof by no request is none.
        def zero?(value) = value.to_s.match?(/\A0+\z/)

        def in_order(canary, written)
          return canary.freeze if canary[:longest] >= canary[:seconds]

          invalid(written, " longest: cannot be less than seconds:.")
        end
      end
    end
  end
end
