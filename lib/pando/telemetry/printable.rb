# frozen_string_literal: true

module Pando
  module Telemetry
    # Makes text from outside (a request's path, an error's message) safe to print. The result cannot end a line or
    # steer a terminal, and its length is limited.
    #
    # @api private
    module Printable
      # Control characters and other invisible ones: bidirectional overrides, zero-width characters, line separators,
      # unassigned characters.
      HIDDEN = /[\p{C}\p{Zl}\p{Zp}]/
      SHORT = { "\n" => "\\n", "\r" => "\\r", "\t" => "\\t", "\e" => "\\e" }.freeze
      private_constant :HIDDEN, :SHORT

      class << self
        # @param value [#to_s]
        # @param limit [Integer] the most characters that are shown
        # @return [String] in UTF-8, hidden characters as backslash escapes
        def escape(value, limit)
          text = head(value.to_s, limit).b.gsub("\\") { "\\\\" }.force_encoding(Encoding::UTF_8)
          scrub(text).gsub(HIDDEN) { |one| SHORT[one] || code(one) }
        end

        # @param text [String] of any encoding, valid or not
        # @param limit [Integer] characters
        # @return [String] valid UTF-8, invalid bytes as `\xNN`, cut with an ellipsis
        def utf8(text, limit) = scrub(head(text, limit))

        # @param backtrace [String, Array, Object, nil] an application's exception may answer with anything
        # @return [Array] its frames
        def frames(backtrace) = backtrace.is_a?(String) ? backtrace.lines(chomp: true) : Array(backtrace)

        private

        # Reads only as many bytes as can be shown: at most four per character.
        def head(text, limit)
          start = to_utf8(text.byteslice(0, (limit * 4) + 4))
          start.length > limit ? "#{start[0, limit]}…" : start
        end

        # Bytes of unknown encoding are most often UTF-8.
        def to_utf8(text)
          case text.encoding
          when Encoding::UTF_8 then text
          when Encoding::BINARY, Encoding::US_ASCII then text.dup.force_encoding(Encoding::UTF_8)
          else text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace)
          end
        rescue EncodingError
          text.dup.force_encoding(Encoding::UTF_8)
        end

        def scrub(text)
          text.scrub { |bytes| bytes.each_byte.map { |byte| hex(byte) }.join }
        end

        def code(character)
          character.ord < 0x100 ? hex(character.ord) : Kernel.format("\\u{%X}", character.ord)
        end

        def hex(byte) = Kernel.format("\\x%02X", byte)
      end
    end
  end
end
