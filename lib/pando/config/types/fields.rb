# frozen_string_literal: true

require "pando/config/type"

module Pando
  class Config
    module Types
      # A Hash whose fields have types of their own and may be left out, or one of a few names for all of them. As a
      # String the values of the fields in their order, "20,10,30".
      #
      # @abstract A subclass has the constants FIELDS (name => type), NAMES (String => value) and DEFAULT (for fields
      #   that are left out), and may override {#complete}.
      # @api private
      class Fields < Type
        def cast(value, **)
          return self.class::NAMES.fetch(value.to_s) if name?(value)
          return read(value) if value.is_a?(Hash)

          texts = value.is_a?(String) ? value.split(",", -1) : []
          return invalid(value) if texts.size != fields.size || texts.any?(&:empty?)

          read(fields.keys.zip(texts).to_h, value)
        end

        def write(value)
          return value.inspect unless value.is_a?(Hash)

          "{ #{value.map { |name, one| "#{name}: #{fields.fetch(name).write(one)}" }.join(", ")} }"
        end

        def text(value) = value.is_a?(Hash) ? value.values_at(*fields.keys).join(",") : super

        def export(value) = value.is_a?(Symbol) ? value.name : value

        private

        def fields = self.class::FIELDS

        # For a String the message names the Strings that are allowed: a flag cannot take a Hash.
        def invalid(value, hint = "")
          return super unless value.is_a?(String)

          texts = [*(self.class::NAMES.keys - %w[true false]).join(", "), fields.keys.join(",").upcase]
          raise Invalid, "must be #{texts.join(" or ")}, but is #{value.inspect}.#{hint}"
        end

        # Whether it is one of the names, as a String or as its value.
        def name?(value) = !value.is_a?(Hash) && self.class::NAMES.key?(value.to_s)

        def read(hash, written = hash)
          unknown = hash.keys.find { |name| !fields.key?(name) }
          invalid(written, " There is no #{unknown}:.#{Suggestion.for(unknown, fields.keys)}") if unknown

          said = hash.to_h { |name, value| [name, cast_field(name, value, written)] }
          complete(self.class::DEFAULT.merge(said), said, written).freeze
        end

        def cast_field(name, value, written)
          fields.fetch(name).cast(value)
        rescue Invalid => e
          invalid(written, " #{name}: #{e.message}#{advice(value)}")
        end

        # @param all [Hash] @param _said [Hash] without defaults @param _written [Object] as the user wrote it
        # @return [Hash] the fields, completed by those that depend on others
        # @raise [Invalid] the fields contradict each other
        def complete(all, _said, _written) = all

        # @return [String, nil] what to write instead
        def advice(_value) = nil
      end
    end
  end
end
