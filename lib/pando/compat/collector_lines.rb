# frozen_string_literal: true

require "pando/compat/source"

module Pando
  module Compat
    # Finds the statements for the garbage collector in the block of a hook. Pando does itself what they are for, and
    # what Puma does once, a hook of Pando does at each fork, where it makes shared pages private.
    #
    # Blocks uses it.
    class CollectorLines
      # Hooks that run at a fork.
      AT_FORK = %w[before_fork after_mold_fork after_worker_fork after_worker_ready].freeze
      MOLD = "`gc mold: :auto`, the default, does this once in each mold (docs/sharing.md)."
      MAJOR = "`gc major: :auto`, the default, decides when major GCs run (docs/sharing.md)."
      REST = /(?:\s+(?:if|unless)\s[^\n]*)?\s*(?:#[^\n]*)?\z/
      COLLECTION = /(?:::)?(?:Process\.warmup|GC\.(?:compact|start))\b(?:\s*\([^()]*\)|\s+\w+:[^\n{}]*?)?/
      COLLECTIONS = /\A\s*(?:#{COLLECTION}|\d+\.times\s*(?:\{\s*#{COLLECTION}\s*\}|do\s+#{COLLECTION}\s+end))#{REST}/
      KEY = /rgengc_allow_full_mark:|:rgengc_allow_full_mark\s*=>/
      PERMISSION = /\A\s*(?:::)?GC\.config[ (]\s*(?:#{KEY})[^,()]*\)?#{REST}/
      FIRST = /(?:\bdo|\{)\s*(?:\|[^|]*\|)?\s*(?:#.*)?\z/
      LAST = /\A\s*(?:end\b|\})/
      private_constant :REST, :COLLECTION, :COLLECTIONS, :KEY, :PERMISSION, :FIRST, :LAST

      # @param hook [String] Pando's name for it
      def initialize(statement, hook)
        @text = statement.text
        @body = statement.body
        @at_fork = AT_FORK.include?(hook)
        @reasons = []
        @rest = @text.include?("\n") ? without_lines : without_parts
      end

      # @return [String, nil] why they are left out; nil: there are none
      def reason = (@reasons.uniq.join(" ") if @reasons.any?)

      # @return [String, nil] the statement without them: lines become comments; nil: its block has no others
      attr_reader :rest

      private

      def without_lines
        lines = @text.split("\n", -1)
        pieces = FIRST.match?(lines.first) && LAST.match?(lines.last) ? pieces(lines) : []
        found = pieces.select { |piece| foreign?(lines[piece.rows].join("\n")) }
        return @text if found.empty?

        as_comments(lines, found) unless found == pieces
      end

      def pieces(lines)
        Source.pieces(lines, 1, lines.size - 2).select { |piece| piece.kind == :code }
      rescue Source::Unreadable
        []
      end

      def as_comments(lines, pieces)
        rows = pieces.flat_map { |piece| piece.rows.to_a }
        lines.map.with_index { |line, row| rows.include?(row) ? line.sub(/(?=\S)/, "# ") : line }.join("\n")
      end

      def without_parts
        parts = Source.parts(@body.to_s)
        kept = parts.reject { |part| foreign?(part) }
        return @text if kept == parts

        @text.sub(@body) { "#{kept.map(&:strip).join("; ")} " } if kept.any?
      end

      # Whether Pando does itself what these statements do. Remembers why.
      def foreign?(text)
        reasons = Source.parts(text).map { |part| reason_for(part) }
        return false unless reasons.all?

        @reasons.concat(reasons)
        true
      end

      def reason_for(text)
        return MAJOR if text.match?(PERMISSION)

        MOLD if @at_fork && text.match?(COLLECTIONS)
      end
    end
  end
end
