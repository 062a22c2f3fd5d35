# frozen_string_literal: true

require "pando/compat/source"

module Pando
  module Compat
    # An `if`, `unless` or `case` over several lines: finds its heads (`if x`, `elsif y`, `when 1`, `else`) and the
    # branches between them.
    #
    # @api private
    class Branches
      CLAUSES = { if: %w[elsif else], unless: %w[else], case: %w[when in else] }.freeze
      # Tokens at the end of a line that continues on the next one.
      UNFINISHED = %i[on_op on_comma on_period].freeze
      CONJUNCTIONS = %w[and or not].freeze
      private_constant :CLAUSES, :UNFINISHED, :CONJUNCTIONS

      # @param node [Array] a statement, in the form of Ripper.sexp
      # @return [Boolean]
      def self.of?(node) = CLAUSES.key?(node.first)

      # @param lines [Array<String>] of the statement
      def initialize(lines)
        @lines = lines
        text = lines.join("\n")
        @words = CLAUSES.fetch(Source.statements(text).first.first)
        @tokens = Source.tokens(text)
      end

      # @return [Array<Range>, nil] the lines of each head, and that of the `end`; nil: the branches cannot be separated
      #   by lines
      def heads
        rows = starts.map do |row|
          row..(ends.find do |one|
            one >= row
          end || row)
        end << ((@lines.size - 1)..(@lines.size - 1))
        rows if apart?(rows) && alone?(rows)
      end

      # @param head [Range]
      # @return [String] the expression that the head tests
      def question(head)
        text = @lines[head].join("\n").sub(/\bthen\s*\z/, "")
        asked = text.sub(/\A\s*(?:if|unless|elsif|case|when|in|else)\b/, "")
        text.match?(/\A\s*when\b/) ? "[#{asked}]" : asked
      end

      private

      # The rows in which a head begins.
      def starts
        [0, *each_row.filter_map { |token, row| row if clause?(token) }]
      end

      # The rows in which a head may end.
      def ends
        @ends ||= begin
          last = nil
          each_row.filter_map do |token, row|
            found = row if newline?(token) && !unfinished?(last)
            last = token unless token.text.strip.empty? || token.kind == :on_comment
            found
          end
        end
      end

      def each_row
        row = 0
        @tokens.map { |token| [token, row].tap { row += token.text.count("\n") } }
      end

      def clause?(token) = token.kind == :on_kw && token.depth == 1 && @words.include?(token.text)

      def newline?(token)
        token.depth == 1 && %i[on_nl on_ignored_nl on_comment].include?(token.kind) && token.text.end_with?("\n")
      end

      def unfinished?(token)
        token && (UNFINISHED.include?(token.kind) || CONJUNCTIONS.include?(token.text))
      end

      def apart?(rows) = rows.each_cons(2).all? { |head, following| head.end < following.begin }

      # Whether each head begins its line and no branch shares a line with one.
      def alone?(rows)
        heads = rows[0...-1].map { |head| @lines[head].join(" ") }
        heads.drop(1).all? { |head| head.match?(/\A\s*(?:#{@words.join("|")})\b/) } &&
          heads.none? { |head| head.match?(/\bthen\s+[^#\s]|\A\s*else\s+[^#\s]/) } &&
          @lines.last.match?(/\A\s*end\s*(?:#.*)?\z/)
      end
    end
  end
end
