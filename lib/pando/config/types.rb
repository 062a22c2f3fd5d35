# frozen_string_literal: true

require "pando/suggestion"

module Pando
  class Config
    # Describes the values of a setting. A type reads both Ruby values, from a config file, and Strings, from a flag or
    # an environment variable. It can also describe and write its values.
    #
    # A subclass implements #cast and #expects.
    #
    # @api private
    class Type
      # The value does not fit. The caller adds where it was written.
      class Invalid < StandardError; end

      # @param value [Object] as written by the user
      # @param options [Hash{Symbol => Object}] the setting's options, already read
      # @raise [Invalid]
      def cast(_value, **_options) = raise NotImplementedError

      # @return [Array(Object, Hash{Symbol => String})] the value without the options that its text carries, and these
      def split_options(value) = [value, {}]

      # @return [String] what a correct value is, after "must be"
      def expects = raise NotImplementedError

      # @param value [Object] a value that #cast returned @param directory [String] absolute, of the application
      # @return [Object] the value that the server works with
      # @raise [ArgumentError] it does not fit the directory
      def resolved(value, _directory) = value

      # @return [String, nil] what a number counts
      def unit = nil

      # @return [Boolean] whether the setting may have options without a value
      def optional? = false

      # @return [String] the value as a config file writes it
      def write(value) = value.inspect

      # @return [Object] the value for JSON
      def export(value) = value

      # @return [String] the value as a flag writes it, or as near to that as possible; #cast can read it again
      def text(value) = [*export(value)].join(",")

      private

      def invalid(value, hint = "")
        raise Invalid, "must be #{expects}, but is #{value.inspect}.#{hint}"
      end
    end

    # @api private
    module Types
      # A String that matches a pattern.
      class Text < Type
        attr_reader :expects

        # @param expects [String] describes the text: "the path of a file"
        # @param symbols [Array<Symbol>, nil] those that may stand for a text; nil: any
        def initialize(expects, pattern, symbols: nil)
          super()
          @expects = expects
          @pattern = pattern
          @symbols = symbols
        end

        def cast(value, **)
          invalid(value) if value.is_a?(Symbol) && @symbols && !@symbols.include?(value)
          text = value.is_a?(Symbol) ? value.name : value
          text.is_a?(String) && text.valid_encoding? && @pattern.match?(text) ? text : invalid(value)
        end
      end

      # The path of a file or directory. The server works with the absolute one.
      class Path < Text
        # @param named [String] "a file"
        def initialize(named, symbols: nil)
          super("the path of #{named}", /\A[^\0]+\z/, symbols: symbols)
        end

        def resolved(value, directory) = value && File.expand_path(value, directory)
      end

      # A path, or "-" for "stdout".
      class PathOrStdout < Path
        def resolved(value, directory) = %w[stdout -].include?(value) ? "-" : super
      end

      # A list of texts, an Array of Strings. A single String works too; commas separate several texts.
      class Texts < Type
        attr_reader :expects

        ANYTHING = /\A[^\0\n,]+\z/

        # @param expects [String] describes the list, "a list of queues" @param least [Integer] the smallest size
        # @param pattern [Regexp] what each text must match
        def initialize(expects, least: 0, pattern: ANYTHING)
          super()
          @expects = expects
          @least = least
          @pattern = pattern
        end

        def cast(value, **)
          separator = value.is_a?(String) && value.end_with?("\0") ? "\0" : ","
          texts = value.is_a?(String) ? value.split(separator) : [*value]
          texts = texts.map { |text| text.is_a?(Symbol) ? text.name : text }
          invalid(value) unless texts.size >= @least && texts.all? { |text| fit?(text) }
          texts.map(&:-@).freeze
        end

        # A NUL ends each of the texts if one of them has a comma.
        def text(value) = value.any? { |one| one.include?(",") } ? value.map { |one| "#{one}\0" }.join : super

        private

        def fit?(text) = text.is_a?(String) && text.match?(@pattern)
      end

      # One of a few names, as it was declared: a Symbol for a setting. The value is looked up in the list, so that no
      # new Symbol is created.
      class Choice < Type
        def initialize(*names)
          super()
          @names = names.to_h { |name| [name.to_s, name] }
        end

        def cast(value, **)
          @names.fetch(value.to_s) { invalid(value, Suggestion.for(value, @names.keys)) }
        end

        def expects = "#{@names.keys[0..-2].join(", ")} or #{@names.keys.last}"
      end

      # True or false.
      class Truth < Type
        TEXTS = { "true" => true, "on" => true, "false" => false, "off" => false }.freeze

        def cast(value, **)
          value = TEXTS.fetch(value, value)
          [true, false].include?(value) ? value : invalid(value)
        end

        def expects = "true or false"
      end

      # A list of networks: an Array of addresses, prefixes and a few words. A
      # flag separates them by commas; false is an empty list.
      class Networks < Type
        WORDS = %w[loopback private unix].freeze
        NOBODY = [false, "off", "false", "none"].freeze

        def cast(value, **)
          return [].freeze if NOBODY.include?(value)

          names = value.is_a?(String) ? value.split(",") : [*value]
          invalid(value) if names.empty?
          names.map { |name| network(name) || invalid(value, Suggestion.for(name.to_s, WORDS)) }.uniq.freeze
        end

        def expects
          "a list of addresses, networks (10.0.0.0/8) and the words #{WORDS[0..-2].join(", ")} and #{WORDS.last}"
        end

        def write(value) = value.empty? ? "false" : value.inspect

        def export(value) = value.empty? ? false : value

        private

        def network(name)
          name = name.to_s.strip
          return name.freeze if WORDS.include?(name)

          address(name) if name.match?(/[.:]/)
        end

        # Required on demand: the monitor needs it only if the setting names addresses.
        def address(name)
          require "ipaddr"
          IPAddr.new(name)
          name.freeze
        rescue IPAddr::Error
          nil
        end
      end

      # Any value. The library that receives it checks it.
      class Anything < Type
        def cast(value, **) = value
        def expects = "anything"
      end

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

      # A value of another type, or nil for "off", which is `false` in a config file and `off` on the command line.
      #
      #   OrOff.new(Seconds.new)
      class OrOff < Type
        OFF = [false, "off", "false"].freeze

        def initialize(type)
          super()
          @type = type
        end

        # Refuses nil: it usually comes from an environment variable that is not set, and rarely means "off".
        def cast(value, **options)
          return if OFF.include?(value)

          @type.cast(value, **options)
        rescue Invalid
          invalid(value)
        end

        def expects = "#{@type.expects}, or false"

        def unit = @type.unit

        def resolved(value, directory) = value && @type.resolved(value, directory)

        def write(value) = value.nil? ? "false" : @type.write(value)

        def export(value) = value.nil? ? false : @type.export(value)

        def text(value) = value.nil? ? super : @type.text(value)
      end
    end
  end
end

require "pando/config/types/numbers"
require "pando/config/types/fields"
require "pando/config/listen"
