# frozen_string_literal: true

require "pando/config/type"

module Pando
  class Config
    module Types
      # Any value. The library that receives it checks it.
      class Anything < Type
        def cast(value, **) = value
        def expects = "anything"
      end
    end
  end
end
