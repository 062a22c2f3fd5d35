# frozen_string_literal: true

require "pando/config/type"

module Pando
  class Config
    module Types
      # When the cluster reforks: :auto, :manual, false, or after numbers of
      # requests, `after: [500, 750, false]`, one for each generation. The last
      # number repeats unless `false` ends the list. As a String "500,750,off".
      #
      # @api private
      class Refork < Type
        NAMES = { "auto" => :auto, "manual" => :manual, "off" => false, "false" => false }.freeze
        LIST = /\A\d{1,12}(,\d{1,12})*(,off|,false)?\z/

        def cast(value = nil, after: nil)
          return value.nil? ? { after: after } : invalid(value, " Leave the value out: after: is enough.") if after

          case value
          when "auto", "manual", "off", "false", :auto, :manual, false then NAMES.fetch(value.to_s)
          when LIST then { after: After.new.cast(value.split(",")) }
          else invalid(value, hint(value))
          end
        end

        def expects
          "auto, manual, false or a list of numbers of requests"
        end

        # `refork after: [500]` has an option and no value.
        def optional?
          true
        end

        def write(value)
          value.is_a?(Hash) ? "after: #{value[:after].inspect}" : value.inspect
        end

        def export(value)
          value.is_a?(Symbol) ? value.name : value
        end

        def text(value)
          super(value.is_a?(Hash) ? value[:after] : value)
        end

        private

        def hint(value)
          return " Write refork after: #{Array(value).inspect}." if value.is_a?(Integer) || value.is_a?(Array)

          Suggestion.for(value, NAMES.keys)
        end

        # The list itself.
        #
        # @api private
        class After < Type
          OFF = [false, "off", "false"].freeze

          def cast(value, **)
            *requests, last = value.is_a?(Array) ? value : [value]
            requests.map! { |number| whole(number) }
            ends = requests.any? && OFF.include?(last)
            list = requests + [ends ? false : whole(last)]
            list.include?(nil) ? invalid(value) : list.freeze
          end

          def expects
            "a list of numbers of requests, 1 or more each, which false may end"
          end

          private

          def whole(value)
            number = value.is_a?(String) && value.match?(/\A\d{1,12}\z/) ? value.to_i : value
            number if number.is_a?(Integer) && number.positive?
          end
        end
      end
    end
  end
end
