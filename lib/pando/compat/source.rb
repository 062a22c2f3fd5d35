# frozen_string_literal: true

require "ripper"

module Pando
  module Compat
    # A config file of another server as text, cut into pieces of whole lines without running it.
    #
    # `pando init` uses it, by way of Translator.
    #
    # @api private
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
        # @param from [Integer] index of the first line
        # @param to [Integer] index of the last line
        # @return [Array<Piece>] all lines, in order
        # @raise [Unreadable]
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
  end
end
