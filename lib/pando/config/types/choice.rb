# frozen_string_literal: true

require "pando/config/type"

module Pando
  class Config
    module Types
      # One of a few names, a Symbol. A String is looked up in the list, so that no new Symbol is created.
      #
      # @api private
      class Choice < Type
        # @param names [Array<Symbol>]
        def initialize(*names)
          super()
          @names = names.to_h { |name| [name.to_s, name] }
        end

        def cast(value, **)
          @names.fetch(value.to_s) { invalid(value, Suggestion.for(value, @names.keys)) }
        end

        def expects
          "#{@names.keys[0..-2].join(", ")} or #{@names.keys.last}"
        end

        def export(value)
          value.to_s
        end
      end
    end
  end
end
