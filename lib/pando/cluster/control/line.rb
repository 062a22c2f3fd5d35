# frozen_string_literal: true

module Pando
  module Cluster
    class Control
      # One line of the control socket's protocol: a word, then `key=value` pairs. Every byte of a value that is not
      # plain is written as %XX, so that a line needs no quotes.
      #
      #     worker slot=0 generation=2 pid=4711 state=ready job=GET%20/
      module Line
        # Bytes of a line, with its end.
        LIMIT = 4096
        VALUE_LIMIT = 1024
        PLAIN = %r{[^\w.:/,+@-]}n
        # Numbers as Ruby writes them: 007 is a text.
        INTEGER = /\A(?:0|-?[1-9]\d*)\z/
        FLOAT = /\A-?(?:0|[1-9]\d*)\.\d+(?:e[+-]?\d+)?\z/
        WORD = /\A[a-z][a-z0-9_]{0,31}\z/

        module_function

        # @param pairs [Hash{Symbol => Object}] nil is left out
        # @return [String] with a newline at its end
        def encode(word, pairs = {})
          line = +word.to_s
          pairs.each { |key, value| line << " " << key.to_s << "=" << written(value) unless value.nil? }
          line = line[0, LIMIT - 1].sub(/ [^ ]*\z/, "") if line.bytesize >= LIMIT
          "#{line}\n"
        end

        # @param line [String] untrusted
        # @return [Array(String, Hash{String => String}), nil] nil if it is malformed
        def decode(line)
          word, *fields = line.b.split
          return unless word && WORD.match?(word)

          pairs = {}
          fields.each do |field|
            key, equals, value = field.partition("=")
            return nil if equals.empty? || !WORD.match?(key)

            pairs[key] = plain(value)
          end
          [word, pairs]
        end

        # @return [String] in UTF-8
        def plain(value)
          value = unescape(value) if value.include?("%")
          value.force_encoding(Encoding::UTF_8)
          value.valid_encoding? ? value : value.scrub("?")
        end

        # @param texts [Array<String>] keys whose values stay texts
        # @return [Hash{String => Object}] with numbers and true for what looks like them
        def typed(pairs, texts = [])
          pairs.to_h do |key, value|
            next [key, value] if texts.include?(key)

            case value
            when INTEGER then [key, value.to_i]
            when FLOAT then [key, value.to_f]
            else [key, value == "true" || value]
            end
          end
        end

        # @param pairs [Hash{String => String}] of the record `event`
        # @return [Events::Event]
        def event(pairs)
          Events::Catalogue.received(typed(pairs.except("number"), Events::Catalogue::TEXTS))
        end

        # Most values are plain.
        def written(value)
          return value.to_s if value.is_a?(Integer)

          text = value.to_s
          text = text.b unless text.ascii_only?
          text = text[0, VALUE_LIMIT] if text.bytesize > VALUE_LIMIT
          PLAIN.match?(text) ? escape(text.b) : text
        end

        def escape(bytes) = bytes.gsub(PLAIN) { |byte| format("%%%02X", byte.ord) }

        # @return [String] in BINARY
        def unescape(text) = text.gsub(/%(\h\h)/n) { Regexp.last_match(1).hex.chr }
      end
    end
  end
end
