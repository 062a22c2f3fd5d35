# frozen_string_literal: true

module Pando
  module Compat
    # Builds the lines of the new file.
    class Output
      MAGIC = /\A#.*\b(?:frozen_string_literal|(?:en)?coding)\s*:/
      BLANK = /\A\s*(?:#.*)?\z/
      private_constant :MAGIC, :BLANK

      # @return [Hash{Symbol => Integer}] lines with code that were kept, translated and left out
      attr_reader :counts

      def initialize
        @lines = []
        @counts = { kept: 0, translated: 0, left_out: 0 }
      end

      def text(header)
        magic = @lines.take_while { |line| MAGIC.match?(line) }
        "#{[*magic, *header, *@lines.drop(magic.size)].join("\n")}\n"
      end

      def comments(lines) = @lines.concat(lines)

      # A line that is unchanged, or is followed by the original as a comment.
      def line(line, original)
        changed = line.strip != original.strip
        @lines << (changed ? "#{line} # was: #{original.strip}" : original)
        @counts[changed ? :translated : :kept] += 1 unless original.match?(BLANK)
      end

      # Replaces the original lines with other ones.
      def instead(lines, originals)
        originals.each { |original| @lines << "#{indent(originals)}# was: #{original.strip}" }
        @lines.concat(lines)
        @counts[:translated] += originals.size
      end

      def left_out(originals, reason)
        as_comments(originals, reason)
        @counts[:left_out] += originals.count { |line| !line.strip.empty? }
      end

      def as_comments(originals, reason)
        remark(originals, reason)
        originals.each { |line| @lines << "#{indent(originals)}# #{line.delete_prefix(indent(originals))}".rstrip }
      end

      # Puts a comment above the translation of these lines.
      def remark(originals, text)
        text = text.sub(/\ALeave it out: (.)/) { Regexp.last_match(1).upcase }
        @lines << "#{indent(originals)}# pando: #{text}"
      end

      private

      def indent(originals) = originals.first[/\A[ \t]*/]
    end
  end
end
