# frozen_string_literal: true

module Pando
  class Batch
    # Checks the arguments of Batch and Consumer when they are made, so that the error does not come up later, in use.
    #
    # @api private
    module Demand
      class << self
        # @raise [ArgumentError]
        def count(name, value)
          fits = value.is_a?(Integer) && value.positive?
          refuse(name, "a whole number, at least one", value) unless fits
        end

        def seconds(name, value)
          fits = value.is_a?(Numeric) && value.real? && !value.negative?
          refuse(name, "a number of seconds", value) unless fits
        end

        def callable(name, value)
          refuse(name, "something to call", value) unless value.respond_to?(:call)
        end

        # The `key:` option.
        def key(value)
          refuse(:key, "a Symbol or something to call", value) unless value.nil? || value.respond_to?(:to_proc)
        end

        # The `retry_on:` option.
        def errors(name, values)
          values.each do |one|
            fits = one.is_a?(Module) || one.respond_to?(:call)
            refuse(name, "classes of errors, or something to call", one) unless fits
          end
        end

        def items(value)
          refuse(:items, "an Array, or another Enumerable", value) unless value.respond_to?(:map)
        end

        private

        def refuse(name, wanted, value) = raise(ArgumentError, "#{name}: must be #{wanted}, but is #{value.inspect}")
      end
    end
  end
end
