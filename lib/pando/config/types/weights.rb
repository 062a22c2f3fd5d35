# frozen_string_literal: true

require "pando/config/type"

module Pando
  class Config
    module Types
      # `{ critical: 3, default: 2 }`: queues and their weights, exactly as written.
      class Weights < Type
        def cast(value, **)
          fits = value.is_a?(Hash) && value.all? do |queue, weight|
            (queue.is_a?(Symbol) || queue.is_a?(String)) && weight.is_a?(Integer) && weight.positive?
          end
          fits ? value : invalid(value)
        end

        def expects = "queues and their weights such as { critical: 3, default: 1 }"
      end
    end
  end
end
