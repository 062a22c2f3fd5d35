# frozen_string_literal: true

require "pando/config/type"

module Pando
  class Config
    module Types
      # A Hash of fields, each of a type of its own, some of which may be left out; or one of a few names for all of
      # them. As text the fields' values in their order, "20,10,30".
      #
      # @abstract A subclass has the constants FIELDS (name => type), NAMES (text => value) and DEFAULT (of what is not
      #   said), and may override {#complete}.
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

        # Who gave a text is told of texts: a flag takes no Hash.
        def invalid(value, hint = "")
          return super unless value.is_a?(String)

          texts = [*(self.class::NAMES.keys - %w[true false]).join(", "), fields.keys.join(",").upcase]
          raise Invalid, "must be #{texts.join(" or ")}, but is #{value.inspect}.#{hint}"
        end

        # As text, or what it stands for.
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
        # @return [Hash] with what depends on other fields
        # @raise [Invalid] they do not fit together
        def complete(all, _said, _written) = all

        # @return [String, nil] what to do instead
        def advice(_value) = nil
      end
    end
  end
end
