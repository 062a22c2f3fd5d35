# frozen_string_literal: true

require "pando/errors"

module Pando
  module Cluster
    class Upgrade
      # A state, or a report, that is not what it must be. The message says what is wrong.
      class Unreadable < Pando::Error; end

      # One line of a document: a word and named values, each read as what it must be and nothing else.
      #
      # @api private
      class Record
        NUMBERS = 0..(2**62)

        # @return [String]
        attr_reader :word
        # @return [Hash{String => String}]
        attr_reader :fields

        # @param fields [Hash{String => String}]
        def initialize(word, fields)
          @word = word
          @fields = fields
        end

        def key?(key) = @fields.key?(key.to_s)

        # @param kind [Symbol, Array<Symbol>] :integer, :number, :text, :bytes, :flag, :integers, :numbers, or the
        #   symbols that it may be
        # @return [Object, nil] nil: it is not there
        # @raise [Unreadable]
        def read(key, kind)
          return unless key?(key)
          return choice(key, kind) if kind.is_a?(Array)

          public_send(kind, key)
        end

        # @return [Integer] not negative
        def integer(key, among: NUMBERS)
          value = Integer(field(key), 10)
          among.cover?(value) ? value : wrong(key)
        rescue ArgumentError
          wrong(key)
        end

        # @return [Array<Integer>]
        def integers(key)
          field(key).split(",").map { |text| Integer(text, 10) }
        rescue ArgumentError
          wrong(key)
        end

        # @return [Float]
        def number(key) = float(key, field(key))

        # @return [Array<Float>]
        def numbers(key) = field(key).split(",").map { |text| float(key, text) }

        # @return [Boolean]
        def flag(key)
          { "true" => true, "false" => false }.fetch(field(key)) { wrong(key) }
        end

        # @return [String] in UTF-8
        def text(key) = bytes(key).force_encoding(Encoding::UTF_8).scrub("?")

        # @return [String] as it was
        def bytes(key) = field(key).dup.force_encoding(Encoding::BINARY)

        # @param symbols [Array<Symbol>]
        def choice(key, symbols)
          text = field(key)
          symbols.find { |symbol| symbol.name == text } || wrong(key)
        end

        private

        def float(key, text)
          text == "Infinity" ? Float::INFINITY : Float(text)
        rescue ArgumentError
          wrong(key)
        end

        def field(key)
          @fields.fetch(key.to_s) { raise Unreadable, "a record #{word} has no #{key}" }
        end

        def wrong(key)
          raise Unreadable, "a record #{word} has #{field(key).inspect[0, 60]} for #{key}"
        end
      end
    end
  end
end
