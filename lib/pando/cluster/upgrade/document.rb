# frozen_string_literal: true

require "pando/cluster/control/line"

module Pando
  module Cluster
    class Upgrade
      # A state, or a report, that is not what it must be. The message says what is wrong.
      class Unreadable < Pando::Error; end

      # Records as text, between two images of the monitor. Each record is a line of a word and `key=value` pairs, with
      # %XX for every byte of a value that is not plain. The first line names the format. The last line counts the
      # others, so that half a document is recognized.
      #
      #     pando 1
      #     rollout size=4
      #     child seat=1 role=worker slot=0 state=ready
      #     end records=2
      #
      # A reader ignores what it does not know, and what is missing stays as it is at a start: so a new field needs no
      # new format. The number changes when an older reader would go wrong.
      class Document
        FORMAT = 1
        # Of older Pandos, if there were several pools.
        SEVERAL = 2
        # Bytes of a whole document.
        LIMIT = 32 * 1_048_576
        WORD = /\A[a-z_]{1,32}\z/
        KEY = /\A[a-z_]{1,32}(\.[a-z_]{1,32})*\z/

        def self.parse(bytes)
          raise Unreadable, "it is larger than #{LIMIT} bytes" if bytes.bytesize > LIMIT

          head, *lines, last = bytes.b.split("\n", -1)[0..-2]
          number = head.to_s[/\Apando (\d{1,9})\z/, 1] or raise Unreadable, "it is no document of Pando's"
          raise Unreadable, "it has format #{number}, not #{FORMAT}" unless [FORMAT, SEVERAL].include?(number.to_i)
          raise Unreadable, "it has no end" unless last == "end records=#{lines.size}"

          new(lines.map { |line| record(line) })
        end

        def self.record(line)
          word, *fields = line.split
          pairs = fields.map { |field| field.split("=", 2) }
          unless word && WORD.match?(word) && pairs.all? { |key, value| value && KEY.match?(key) }
            raise Unreadable, "it has a line that is no record: #{line.inspect[0, 60]}"
          end

          Record.new(word, pairs.to_h { |key, value| [key, Control::Line.unescape(value)] })
        end
        private_class_method :record

        def initialize(records = [])
          @records = records
        end

        # @param fields [Hash{Symbol => Integer, Float, String, Symbol, Boolean, Array<Integer>, nil}] nil is left out
        def add(word, **fields)
          texts = fields.compact.to_h { |key, value| [key.to_s, value.is_a?(Array) ? value.join(",") : value.to_s] }
          @records << Record.new(word, texts)
          self
        end

        def all(word) = @records.select { |record| record.word == word }

        def any(word) = all(word).first

        # @raise [Unreadable] there is none
        def one(word) = any(word) || raise(Unreadable, "it has no record #{word}")

        def to_s
          ["pando #{FORMAT}\n", *@records.map { |record| "#{record}\n" }, "end records=#{@records.size}\n"].join
        end
      end

      # One line of a document: a word and named values, each read as what it must be and nothing else.
      class Record
        NUMBERS = 0..(2**62)

        attr_reader :word, :fields

        def initialize(word, fields)
          @word = word
          @fields = fields
        end

        def to_s = [word, *fields.map { |key, value| "#{key}=#{Control::Line.escape(value.b)}" }].join(" ")

        def key?(key) = @fields.key?(key.to_s)

        # @param kind [Symbol, Array<Symbol>] :integer, :number, :text, :bytes, :flag, :integers, :numbers, or the
        #   symbols that it may be
        # @return [Object, nil] nil: it is not there
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

        def integers(key)
          field(key).split(",").map { |text| Integer(text, 10) }
        rescue ArgumentError
          wrong(key)
        end

        def number(key) = float(key, field(key))

        def numbers(key) = field(key).split(",").map { |text| float(key, text) }

        def flag(key)
          { "true" => true, "false" => false }.fetch(field(key)) { wrong(key) }
        end

        # @return [String] in UTF-8
        def text(key) = bytes(key).force_encoding(Encoding::UTF_8).scrub("?")

        # @return [String] as it was
        def bytes(key) = field(key).dup.force_encoding(Encoding::BINARY)

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
