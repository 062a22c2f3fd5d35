# frozen_string_literal: true

module Pando
  module Cluster
    class Control
      # One line of the control socket's protocol: a word, then `key=value` pairs. Every byte of a value that is not
      # plain is written as %XX, so that a line needs no quotes.
      #
      #     worker slot=0 generation=2 pid=4711 state=ready job=GET%20/
      #
      # @api private
      module Line
        # Bytes of a line, with its end.
        LIMIT = 4096
        VALUE_LIMIT = 1024
        PLAIN = %r{[^\w.:/,+@-]}n
        WORD = /\A[a-z][a-z0-9_]{0,31}\z/

        module_function

        # @param pairs [Hash{Symbol => Object}] nil is left out
        # @return [String] with a newline at its end
        def encode(word, pairs = {})
          fields = pairs.compact.map { |key, value| "#{key}=#{escape(value.to_s.b[0, VALUE_LIMIT])}" }
          line = [word, *fields].join(" ")
          line = line[0, LIMIT - 1].sub(/ [^ ]*\z/, "") if line.bytesize >= LIMIT
          "#{line}\n"
        end

        # @param line [String] untrusted
        # @return [Array(String, Hash{String => String}), nil] nil if it is malformed
        def decode(line)
          word, *fields = line.b.chomp.split
          pairs = fields.map { |field| field.split("=", 2) }
          return unless word && WORD.match?(word) && pairs.all? { |key, value| value && WORD.match?(key) }

          [word, pairs.to_h { |key, value| [key, unescape(value).force_encoding(Encoding::UTF_8).scrub("?")] }]
        end

        # @param pairs [Hash{String => String}]
        # @return [Hash{String => Object}] with numbers and true for what looks like them
        def typed(pairs)
          pairs.transform_values do |value|
            case value
            when /\A-?\d+\z/ then value.to_i
            when /\A-?\d+\.\d+(?:e[+-]?\d+)?\z/ then value.to_f
            when "true" then true
            else value
            end
          end
        end

        # @param bytes [String] in BINARY
        def escape(bytes) = bytes.gsub(PLAIN) { |byte| format("%%%02X", byte.ord) }

        # @return [String] in BINARY
        def unescape(text) = text.gsub(/%(\h\h)/n) { Regexp.last_match(1).hex.chr }
      end
    end
  end
end
