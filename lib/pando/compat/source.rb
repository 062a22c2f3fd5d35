# frozen_string_literal: true

require "ripper"

module Pando
  module Compat
    # A config file of another server as text, cut into pieces of whole lines without running it.
    #
    # `pando init` uses it, by way of Translator.
    module Source
      # Consecutive lines: a :comment or an empty line, one or more statements (:code), or everything after __END__
      # (:data). `rows` is the range of their indices.
      Piece = Struct.new(:kind, :rows)

      # The file is not valid Ruby.
      class Unreadable < StandardError; end

      # A line that continues the statement before it. Ruby 4.0 also allows operators at the beginning.
      CONTINUATION = RUBY_VERSION >= "4" ? /\A\s*(?:&?\.[a-z_(]|&&|\|\||and\b|or\b)/i : /\A\s*&?\.[a-z_(]/i
      TEXT = /\A\s*(?:#.*)?\z/
      private_constant :CONTINUATION, :TEXT

      # A token of Ripper.lex: how deeply it is nested in brackets, blocks and so on, and whether it is a modifier such
      # as `if` after a statement.
      Token = Struct.new(:kind, :text, :depth, :modifier)

      OPENING = %i[on_lparen on_lbracket on_lbrace on_tlambeg on_embexpr_beg on_tstring_beg on_backtick on_regexp_beg
                   on_words_beg on_qwords_beg on_symbols_beg on_qsymbols_beg].freeze
      CLOSING = %i[on_rparen on_rbracket on_rbrace on_embexpr_end on_tstring_end on_regexp_end on_label_end].freeze
      BLOCKS = %w[do begin case def class module for].freeze
      MODIFIERS = %w[if unless while until].freeze
      LOOPS = %w[while until for].freeze
      private_constant :OPENING, :CLOSING, :BLOCKS, :MODIFIERS, :LOOPS

      class << self
        # @param lines [Array<String>] without their newlines
        def pieces(lines, from = 0, to = lines.size - 1)
          found = []
          while from <= to
            piece = piece(lines, from, to)
            found << piece
            from = piece.rows.end + 1
          end
          found
        end

        # @return [Array, nil] the statements of a program in the form of Ripper.sexp; nil: it is not a complete program
        def statements(text)
          Ripper.sexp(text)&.at(1)&.reject { |one| one.first == :void_stmt }
        end

        # @return [Array<String>] the statements of a line
        def parts(text)
          cut = tokens(text).slice_when { |one, _| one.kind == :on_semicolon && one.depth.zero? }
          texts = cut.map { |part| part.map(&:text).join.sub(/;\s*\z/, "") }
          texts.reject { |part| statements(part).to_a.empty? }
        end

        # @return [Array<Token>] whose texts, joined, are the whole text
        def tokens(text)
          depth = 0
          loops = []
          Ripper.lex(text).map do |_, kind, token, state|
            depth -= 1 if closes?(kind, token)
            word = kind == :on_kw && !state.allbits?(Ripper::EXPR_ENDFN)
            modifier = word && MODIFIERS.include?(token) && state.allbits?(Ripper::EXPR_LABEL)
            Token.new(kind, token, depth, modifier).tap do
              depth += 1 if opens?(kind, token) || (word && !modifier && opens_block?(token, depth, loops))
            end
          end
        end

        # @return [Array<Array(Symbol, Object)>] the nodes of these kinds in a tree of Ripper's
        def nodes(tree, *kinds, &block)
          return to_enum(:nodes, tree, *kinds).to_a unless block
          return unless tree.is_a?(Array)

          yield tree if kinds.include?(tree.first)
          tree.each { |one| nodes(one, *kinds, &block) }
        end

        private

        def piece(lines, from, to)
          case lines[from]
          when /\A=begin\b/ then Piece.new(:comment, from..last_of_comment(lines, from, to))
          when "__END__" then Piece.new(:data, from..to)
          when TEXT then Piece.new(:comment, from..from)
          else Piece.new(:code, from..last_of_statement(lines, from, to))
          end
        end

        def last_of_comment(lines, from, to) = (from..to).find { |at| lines[at].match?(/\A=end\b/) } || to

        def last_of_statement(lines, from, to)
          (from..to).find { |at| statements(lines[from..at].join("\n")) && !goes_on?(lines, at, to) } ||
            raise(Unreadable, "line #{from + 1}")
        end

        def goes_on?(lines, at, to)
          following = ((at + 1)..to).find { |one| !TEXT.match?(lines[one]) }
          following && CONTINUATION.match?(lines[following])
        end

        def closes?(kind, token) = CLOSING.include?(kind) || (kind == :on_kw && token == "end")
        def opens?(kind, token) = OPENING.include?(kind) || (kind == :on_symbeg && token.size > 1)

        # The `do` of a loop adds no further level.
        def opens_block?(word, depth, loops)
          return false if word == "do" && loops.delete(depth)

          loops << (depth + 1) if LOOPS.include?(word)
          BLOCKS.include?(word) || MODIFIERS.include?(word)
        end
      end
    end

    # Parses one statement of a config file without running it: the name of the setting or hook that it calls, the
    # arguments, the block, and a modifier such as `if ENV["PORT"]`.
    class Statement
      attr_reader :text, :node
      # @return [String, nil] the method that it calls without a receiver
      attr_reader :name

      def initialize(text)
        @text = text
        @tokens = Source.tokens(text)
        @node = Source.statements(text).first
        @name = find_name
      end

      def indent = text[/\A[ \t]*/]

      def arguments
        @arguments ||= split(unwrapped)
      end

      # @return [String, nil] such as " if ENV['PORT']", with a space before it
      def modifier
        at = modifier_at or return
        " #{code(@tokens.drop(at)).strip}"
      end

      def condition = modifier&.sub(/\A \w+\s*/, "")

      # Whether it only calls a method of a constant: `Shop::Cache.warm(1) if ENV["A"]`.
      def call_of_constant?
        text.match?(/\A\s*(?:::)?[A-Z]\w*(?:::[A-Z]\w*)*(?:\.|&\.|::)[a-z_]/)
      end

      def block = (source(@tokens.drop(block_at)) if block_at)

      # @return [String, nil] the statements of its block
      def body = block&.[](/\A(?:do|\{)\s*(?:\|[^|]*\|)?(.*)(?:end|\})[^}]*\z/m, 1)

      def parameters
        from, to = pipes
        to ? split(@tokens[(from + 1)...to]) : []
      end

      # @param parameters [Array<String>, nil] of the block; nil: leave them
      def rewrite(name, parameters: nil)
        tokens = @tokens.dup
        from, to = pipes
        tokens[from..to] = [token("|#{parameters.join(", ")}|")] if parameters && to
        tokens[name_at] = token(name)
        source(tokens)
      end

      private

      def token(text) = Source::Token.new(:on_ident, text, 0, false)
      def source(tokens) = tokens.map(&:text).join
      def code(tokens) = source(tokens.reject { |one| one.kind == :on_comment })

      def find_name
        node = @node
        node = node[2] while %i[if_mod unless_mod].include?(node.first)
        if node.first == :method_add_block
          @block_kind = node[2].first
          node = node[1]
        end
        leaf = { vcall: node[1], command: node[1], fcall: node[1], method_add_arg: node[1]&.at(1) }[node.first]
        leaf[1] if leaf.is_a?(Array) && leaf.first == :@ident && (node.first != :method_add_arg || node[1][0] == :fcall)
      end

      def name_at = @tokens.index { |one| one.kind == :on_ident }
      def modifier_at = @tokens.index { |one| one.modifier && one.depth.zero? }

      def block_at
        return unless @block_kind

        kind, text = @block_kind == :do_block ? [:on_kw, "do"] : [:on_lbrace, "{"]
        @tokens.index { |one| one.depth.zero? && one.kind == kind && one.text == text }
      end

      # The positions of the block's parameters.
      # @return [Array(Integer, Integer)] empty without any
      def pipes
        return [] unless block_at

        from = ((block_at + 1)...@tokens.size).find { |at| !%i[on_sp on_ignored_nl on_nl].include?(@tokens[at].kind) }
        return [] unless from && @tokens[from].text == "|"

        [from, ((from + 1)...@tokens.size).find { |at| @tokens[at].text == "|" }]
      end

      # The tokens of the arguments, without parentheses around them.
      def unwrapped
        stop = [block_at, modifier_at].compact.min || @tokens.size
        found = @tokens[(name_at + 1)...stop].reject { |one| one.kind == :on_comment }
        found.pop while found.any? && blank?(found.last)
        wrapped?(found) ? found[1...-1] : found
      end

      def wrapped?(tokens)
        return false unless tokens.first&.kind == :on_lparen && tokens.last.kind == :on_rparen

        tokens[1...-1].all? { |one| one.depth.positive? }
      end

      def blank?(token) = token.text.strip.empty?

      def split(tokens)
        depth = tokens.reject { |one| blank?(one) }.map(&:depth).min
        parts = tokens.slice_when { |one, _| one.kind == :on_comma && one.depth == depth }
        parts.map { |part| code(part).strip.delete_suffix(",").strip }.reject(&:empty?)
      end
    end

    # An `if`, `unless` or `case` over several lines: finds its heads (`if x`, `elsif y`, `when 1`, `else`) and the
    # branches between them.
    class Branches
      CLAUSES = { if: %w[elsif else], unless: %w[else], case: %w[when in else] }.freeze
      # Tokens at the end of a line that continues on the next one.
      UNFINISHED = %i[on_op on_comma on_period].freeze
      CONJUNCTIONS = %w[and or not].freeze
      private_constant :CLAUSES, :UNFINISHED, :CONJUNCTIONS

      def self.of?(node) = CLAUSES.key?(node.first)

      def initialize(lines)
        @lines = lines
        text = lines.join("\n")
        @words = CLAUSES.fetch(Source.statements(text).first.first)
        @tokens = Source.tokens(text)
      end

      # @return [Array<Range>, nil] the lines of each head, and that of the `end`; nil: the branches cannot be separated
      #   by lines
      def heads
        last = @lines.size - 1
        rows = starts.map { |row| row..(ends.find { |one| one >= row } || row) } + [last..last]
        rows if apart?(rows) && alone?(rows)
      end

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
