# frozen_string_literal: true

require "pando/errors"
require "pando/compat/names"
require "pando/config/settings"

module Pando
  class Config
    # A parsed command line: the settings that it sets and the switches of the command. Understands `-w 4`, `-w4`,
    # `--workers 4`, `--workers=4`, and `--`, which ends the flags.
    #
    #   Flags.parse(%w[-w 4 app.ru]).argv # => ["-w", "4", "app.ru"]
    #
    # @api private
    class Flags
      # A flag that belongs to a command and is not a setting. Its type reads its argument; without a type it is the
      # text. A repeatable one collects all of its arguments. An argument in brackets is a number that may be left out.
      Switch = Struct.new(:name, :flags, :argument, :type, :help, :repeatable, keyword_init: true)

      # A setting, the text that was given for it and the flag as typed; nil for a positional one.
      Given = Struct.new(:setting, :text, :flag) do
        def source = flag || "command line"

        def argv
          return [flag, text] if flag

          text.start_with?("-") ? ["--", text] : [text]
        end
      end

      # "--workers=4" and "-w4"
      WITH_VALUE = /\A(?:(--[^=]+)=(.*)|(-[^-])(.+))\z/m

      attr_reader :given

      # @param switches [Array<Switch>] the command's flags that are not settings
      # @param most_words [Integer] how many words that are not flags it takes
      # @raise [UsageError]
      def self.parse(argv, switches: [], most_words: 1)
        new(switches, most_words).tap { |flags| flags.send(:read, argv.dup) }
      end

      def initialize(switches, most_words = 1)
        @known = [*Settings.all, *switches].flat_map { |taker| taker.flags.map { |flag| [flag, taker] } }.to_h
        @given = []
        @most_words = most_words
        @switched = {}
      end

      # @return [Object, Array<Object>, true, nil] its argument, or true if it has none; nil if it was not given
      def [](name)
        @switched[name]
      end

      def last(name) = given.reverse_each.find { |one| one.setting.name == name }

      # @return [Array<String>] the words that neither are flags nor belong to one
      def words = given.select { |one| one.flag.nil? }.map(&:text)

      # @param except [Array<Symbol>] settings to leave out @param more [Array<String>] flags to add behind the others
      # @return [Array<String>] the settings as arguments again, without the switches
      def argv(except: [:directory], more: [])
        positional, flagged = given.reject { |one| except.include?(one.setting.name) }.partition { |one| one.flag.nil? }
        [*flagged.flat_map(&:argv), *more, *positional.flat_map(&:argv)]
      end

      private

      def read(rest)
        until rest.empty?
          case argument = rest.shift
          when "--" then return rest.each { |text| positional(text) }
          when WITH_VALUE then take(*Regexp.last_match.captures.compact, rest)
          when /\A--/, /\A-.\z/ then take(argument, nil, rest)
          else positional(argument)
          end
        end
      end

      def take(flag, text, rest)
        taker = @known.fetch(flag) { unknown(flag, text || rest.first) }
        text = taker.argument ? text || next_text(flag, taker, rest) : without_text(flag, text)
        taker.is_a?(Switch) ? switch(taker, flag, text) : given << Given.new(taker, text, flag)
      end

      def switch(taker, flag, text)
        value = taker.type && text != true ? taker.type.cast(text) : text
        @switched[taker.name] = taker.repeatable ? [*@switched[taker.name], value] : value
      rescue Type::Invalid => e
        raise UsageError, "#{flag}: #{e.message}"
      end

      # No value begins with a dash, so a word that does is the next flag.
      def next_text(flag, taker, rest)
        return rest.first&.match?(/\A\d/) ? rest.shift : true if taker.argument.start_with?("[")

        raise UsageError, "#{flag} needs a value: #{flag} #{taker.argument}" if rest.empty? || rest.first.match?(/\A-./)

        rest.shift
      end

      def without_text(flag, text)
        raise UsageError, "#{flag} takes no value, but was given #{text.inspect}" if text

        true
      end

      def positional(text)
        setting = Settings.all.find(&:positional?)
        if words.size >= @most_words
          raise UsageError, "give only one #{setting.argument}: #{words.first} or #{text}?"
        end

        given << Given.new(setting, text, nil)
      end

      def unknown(flag, value)
        hint = Compat::Names.flag(flag, value)
        raise UsageError, "unknown flag #{flag}. #{hint}" if hint

        raise UsageError, "unknown flag #{flag}.#{Suggestion.for(flag, @known.keys)} See pando --help."
      end
    end
  end
end
