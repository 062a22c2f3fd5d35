# frozen_string_literal: true

require "pando/config/types/choice"
require "pando/config/types/texts"

module Pando
  class Config
    module Types
      # What Pando does about things that a fork would break: one word for all of them, or a Hash with a list of
      # exceptions, `{ allow: ["some_gem", "app/lib/poller.rb"], otherwise: :refuse }`. As a String "refuse,some_gem".
      #
      # @api private
      class ListedPolicy < Type
        FIELDS = %i[allow otherwise].freeze

        # @param names [Array<Symbol>]
        # @param default [Symbol] the default of otherwise: @param list [String] describes what may be allowed
        def initialize(*names, default:, list:)
          super()
          @choice = Choice.new(*names)
          @allow = Texts.new(list, least: 1)
          @default = default
        end

        # @return [Symbol, Hash{Symbol => Object}] a Hash always has both fields
        def cast(value, **)
          return read(value) if value.is_a?(Hash)
          return word(value) unless value.is_a?(String) && value.include?(",")

          otherwise, *allow = value.split(",")
          read({ otherwise: otherwise, allow: allow })
        end

        def expects = "#{@choice.expects}, or a Hash of allow: and otherwise:"

        def export(value)
          value.is_a?(Hash) ? { **value, otherwise: value[:otherwise].name } : @choice.export(value)
        end

        def write(value)
          value.is_a?(Hash) ? "{ #{value.map { |name, one| "#{name}: #{one.inspect}" }.join(", ")} }" : super
        end

        def text(value)
          value.is_a?(Hash) ? [value[:otherwise], *value[:allow]].join(",") : super
        end

        private

        def word(value)
          value.is_a?(String) || value.is_a?(Symbol) ? @choice.cast(value) : invalid(value)
        end

        def read(hash)
          unknown = hash.keys.find { |name| !FIELDS.include?(name) }
          invalid(hash, " There is no #{unknown}:.#{Suggestion.for(unknown, FIELDS)}") if unknown

          { allow: field(hash, :allow) { |list| @allow.cast(list) },
            otherwise: field(hash, :otherwise) { |name| @choice.cast(name || @default) } }.freeze
        end

        def field(hash, name)
          yield hash[name]
        rescue Invalid => e
          invalid(hash, " #{name}: #{e.message}")
        end
      end
    end
  end
end
