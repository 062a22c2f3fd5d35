# frozen_string_literal: true

require "pando/config/type"

module Pando
  class Config
    module Types
      # Somebody else's business.
      class Anything < Type
        def cast(value, **) = value
        def expects = "anything"
      end
    end
  end
end
