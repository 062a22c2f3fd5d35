# frozen_string_literal: true

require "pando/cluster/upgrade/record"

module Pando
  module Cluster
    class Upgrade
      # Records as text, between two images of the monitor: each a line of a word and `key=value` pairs, with
      # %XX for every byte of a value that is not plain. The first line names the format, the last one counts
      # the others, so that half a document is none.
      #
      #     pando 1
      #     rollout size=4
      #     child seat=1 role=worker slot=0 state=ready
      #     end records=2
      #
      # What a reader does not know it passes over, and what it misses is as it would be at a start: so a new
      # field needs no new format. The number changes when an older reader would go wrong.
      #
      # @api private
      class Document
        FORMAT = 1
        # With records of several pools, which an older reader would take for one.
        SEVERAL = 2
        # Bytes of a whole one.
        LIMIT = 32 * 1_048_576
        PLAIN = %r{[^\w.:/,+@-]}n
        WORD = /\A[a-z_]{1,32}\z/
        KEY = /\A[a-z_]{1,32}(\.[a-z_]{1,32})*\z/

        # @param bytes [String] from anybody
        # @return [Document]
        # @raise [Unreadable]
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

          Record.new(word, pairs.to_h { |key, value| [key, value.gsub(/%(\h\h)/n) { Regexp.last_match(1).hex.chr }] })
        end
        private_class_method :record

        # @param records [Array<Record>]
        def initialize(records = [])
          @records = records
        end

        # @param fields [Hash{Symbol => Integer, Float, String, Symbol, Boolean, Array<Integer>, nil}] nil is left out
        # @return [self]
        def add(word, **fields)
          texts = fields.compact.to_h { |key, value| [key.to_s, value.is_a?(Array) ? value.join(",") : value.to_s] }
          @records << Record.new(word, texts)
          self
        end

        # @return [Array<Record>]
        def all(word) = @records.select { |record| record.word == word }

        # @return [Record, nil]
        def any(word) = all(word).first

        # @return [Record]
        # @raise [Unreadable] there is none
        def one(word) = any(word) || raise(Unreadable, "it has no record #{word}")

        # @return [String]
        def to_s
          lines = ["pando #{format_number}", *@records.map { |record| line(record) }, "end records=#{@records.size}"]
          "#{lines.join("\n")}\n"
        end

        private

        def format_number = all("pool").size > 1 ? SEVERAL : FORMAT
        def line(record) = [record.word, *record.fields.map { |key, value| "#{key}=#{escape(value)}" }].join(" ")
        def escape(value) = value.b.gsub(PLAIN) { |byte| format("%%%02X", byte.ord) }
      end
    end
  end
end
