# frozen_string_literal: true

require "pando/compat/source"

module Pando
  module Compat
    # Parses one statement of a config file without running it: the name of the setting or hook that it calls, the
    # arguments, the block, and a modifier such as `if ENV["PORT"]`.
    #
    # @api private
    class Statement
      # @return [String]
      attr_reader :text
      # @return [Array] in the form of Ripper.sexp
      attr_reader :node
      # @return [String, nil] the method that it calls without a receiver
      attr_reader :name

      # @param text [String] a single statement; a comment may follow it
      def initialize(text)
        @text = text
        @tokens = Source.tokens(text)
        @node = Source.statements(text).first
        @name = find_name
      end

      # @return [String] the indentation
      def indent = text[/\A[ \t]*/]

      # @return [Array<String>] source text of each argument
      def arguments
        @arguments ||= split(unwrapped)
      end

      # @return [String, nil] such as " if ENV['PORT']", with a space before it
      def modifier
        at = modifier_at or return
        " #{code(@tokens.drop(at)).strip}"
      end

      # @return [String, nil] the expression of the modifier
      def condition = modifier&.sub(/\A \w+\s*/, "")

      # @return [String, nil] the block and what follows it
      def block = (source(@tokens.drop(block_at)) if block_at)

      # @return [Array<String>] the parameters of the block
      def parameters
        from, to = pipes
        to ? split(@tokens[(from + 1)...to]) : []
      end

      # @param name [String] the new name
      # @param parameters [Array<String>, nil] of the block; nil: leave them
      # @return [String] the statement with these changes
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
  end
end
