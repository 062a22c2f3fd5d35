# frozen_string_literal: true

module Pando
  class Config
    module Types
      # A Hash whose fields have types of their own and may be left out, or one of a few names for all of them. As a
      # String the values of the fields in their order, "20,10,30".
      #
      # @abstract A subclass has the constants FIELDS (name => type), NAMES (String => value) and DEFAULT (for fields
      #   that are left out), and may override {#complete}.
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

        private

        def fields = self.class::FIELDS
        def defaults = self.class::DEFAULT

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
          complete(defaults.merge(said), said, written).freeze
        end

        def cast_field(name, value, written)
          fields.fetch(name).cast(value)
        rescue Invalid => e
          invalid(written, " #{name}: #{e.message}#{advice(value)}")
        end

        # Completes the fields by those that depend on others, or refuses some that contradict each other.
        def complete(all, _said, _written) = all

        # @return [String, nil] what to write instead
        def advice(_value) = nil
      end

      # What the first worker of a new generation must do before Pando replaces the others: :auto, false for nothing,
      # or `{ requests: 20, seconds: 10, longest: 30 }`, as a String "20,10,30".
      class Canary < Fields
        FIELDS = { requests: Whole.new(1..1_000_000), seconds: Seconds.new(least: 0), longest: Seconds.new }.freeze
        NAMES = { "auto" => :auto, "off" => false, "false" => false }.freeze
        DEFAULT = { requests: 20, seconds: 10.0, longest: 30.0 }.freeze

        def expects = "auto, false or a Hash of requests:, seconds: and longest:"

        private

        def complete(all, said, written)
          all[:longest] = [DEFAULT[:longest], all[:seconds] * 2].max unless said[:longest]
          return all if all[:longest] >= all[:seconds]

          invalid(written, " longest: cannot be less than seconds:.")
        end

        # A canary without a request proves nothing.
        def advice(value)
          " Write canary: false for a rollout without one." if value.to_s.match?(/\A0+\z/)
        end
      end

      # How much Pando may prefault in a new worker: true for the default, false for nothing, or
      # `{ bytes: 128.mb, milliseconds: 1000 }`, as a String "128mb,1000".
      class Prefault < Fields
        FIELDS = { bytes: Bytes.new(4096..), milliseconds: Whole.new(1..10_000) }.freeze
        NAMES = { "on" => true, "true" => true, "off" => false, "false" => false }.freeze
        DEFAULT = { bytes: 128 * (1024**2), milliseconds: 1000 }.freeze

        def expects = "true, false or a Hash of bytes: and milliseconds:"

        def resolved(value, _directory) = value == true ? DEFAULT : value
      end

      # What Pando does about things that a fork would break: one word for all of them, or a Hash with a list of
      # exceptions, `{ allow: ["some_gem", "app/lib/poller.rb"], otherwise: :refuse }`. As a String "refuse,some_gem".
      class ListedPolicy < Fields
        # @param names [Array<Symbol>]
        # @param default [Symbol] the default of otherwise: @param list [String] describes what may be allowed
        def initialize(*names, default:, list:)
          super()
          @choice = Choice.new(*names)
          @fields = { allow: Texts.new(list, least: 1), otherwise: @choice }
          @default = default
        end

        # @return [Symbol, Hash{Symbol => Object}] a Hash always has both fields
        def cast(value, **)
          return read({ allow: nil, **value, otherwise: value[:otherwise] || @default }, value) if value.is_a?(Hash)
          return word(value) unless value.is_a?(String) && value.include?(",")

          otherwise, *allow = value.split(",")
          read({ allow: allow, otherwise: otherwise })
        end

        def expects = "#{@choice.expects}, or a Hash of allow: and otherwise:"

        def text(value)
          value.is_a?(Hash) ? [value[:otherwise], *value[:allow]].join(",") : @choice.text(value)
        end

        private

        attr_reader :fields

        def defaults = {}
        def word(value) = value.is_a?(String) || value.is_a?(Symbol) ? @choice.cast(value) : invalid(value)
      end

      # When the cluster reforks: :auto, :manual, false, or after numbers of requests, `after: [500, 750, false]`, one
      # for each generation. The last number repeats unless `false` ends the list. As a String "500,750,off".
      class Refork < Type
        NAMES = { "auto" => :auto, "manual" => :manual, "off" => false, "false" => false }.freeze
        LIST = /\A\d{1,19}(,\d{1,19})*(,off|,false)?\z/

        def cast(value = nil, after: nil)
          return value.nil? ? { after: after } : invalid(value, " Leave the value out: after: is enough.") if after

          case value
          when "auto", "manual", "off", "false", :auto, :manual, false then NAMES.fetch(value.to_s)
          when LIST then { after: After.new.cast(value.split(",")) }
          else invalid(value, hint(value))
          end
        end

        def expects = "auto, manual, false or a list of numbers of requests"

        # `refork after: [500]` has an option and no value.
        def optional? = true

        def write(value) = value.is_a?(Hash) ? "after: #{value[:after].inspect}" : value.inspect

        def text(value) = super(value.is_a?(Hash) ? value[:after] : value)

        private

        def hint(value)
          return " Write refork after: #{Array(value).inspect}." if value.is_a?(Integer) || value.is_a?(Array)

          Suggestion.for(value, NAMES.keys)
        end

        # The list itself.
        class After < Type
          OFF = [false, "off", "false"].freeze

          def cast(value, **)
            *requests, last = value.is_a?(Array) ? value : [value]
            requests.map! { |number| whole(number) }
            ends = requests.any? && OFF.include?(last)
            list = requests + [ends ? false : whole(last)]
            list.include?(nil) ? invalid(value) : list.freeze
          end

          def expects = "a list of numbers of requests, 1 or more each, which false may end"

          private

          def whole(value)
            number = value.is_a?(String) && value.match?(/\A\d{1,19}\z/) ? value.to_i : value
            number if number.is_a?(Integer) && number.positive?
          end
        end
      end
    end
  end
end
