# frozen_string_literal: true

require "pando/config/types/fields"
require "pando/config/types/seconds"
require "pando/config/types/whole"

module Pando
  class Config
    module Types
      # What the first worker of a new generation must do before Pando replaces the others: :auto, false for nothing,
      # or `{ requests: 20, seconds: 10, longest: 30 }`, as a String "20,10,30".
      #
      # @api private
      class Canary < Fields
        FIELDS = { requests: Whole.new(1..1_000_000), seconds: Seconds.new(zero: true), longest: Seconds.new }.freeze
        NAMES = { "auto" => :auto, "off" => false, "false" => false }.freeze
        DEFAULT = { requests: 20, seconds: 10.0, longest: 30.0 }.freeze

        def expects = "auto, false or a Hash of requests:, seconds: and longest:"

        private

        def complete(all, said, written)
          all[:longest] = [DEFAULT[:longest], all[:seconds] * 2].max unless said[:longest]
          return all if all[:longest] >= all[:seconds]

          invalid(written, " longest: cannot be less than seconds:.")
        end

        # A canary without a request proves nothing.
        def advice(value)
          " Write canary: false for a rollout without one." if value.to_s.match?(/\A0+\z/)
        end
      end
    end
  end
end
