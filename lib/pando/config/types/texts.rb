# frozen_string_literal: true

require "pando/config/type"

module Pando
  class Config
    module Types
      # A list of texts, an Array of Strings. A single String works too; commas separate several texts.
      #
      # @api private
      class Texts < Type
        attr_reader :expects

        ANYTHING = /\A[^\0\n,]+\z/

        # @param expects [String] describes the list, "a list of queues" @param least [Integer] the smallest size
        # @param pattern [Regexp] what each text must match
        def initialize(expects, least: 0, pattern: ANYTHING)
          super()
          @expects = expects
          @least = least
          @pattern = pattern
        end

        def cast(value, **)
          texts = value.is_a?(String) ? value.split(",") : [*value]
          texts = texts.map { |text| text.is_a?(Symbol) ? text.name : text }
          invalid(value) unless texts.size >= @least && texts.all? { |text| fit?(text) }
          texts.map(&:-@).freeze
        end

        private

        def fit?(text) = text.is_a?(String) && text.match?(@pattern)
      end
    end
  end
end
