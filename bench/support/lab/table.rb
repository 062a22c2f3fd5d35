# frozen_string_literal: true

module Bench
  module Lab
    # A table of the report, as text. The first cell of each row is its name.
    #
    # @!attribute head [Array<String>]
    # @!attribute rows [Array<Array<String>>]
    Table = Struct.new(:title, :note, :head, :rows) do
      # @return [String] in Markdown, as in the docs
      def markdown
        line = ->(cells) { "| #{cells.join(" | ")} |" }
        rule = ["---", *(["---:"] * (head.size - 1))]
        ["#{title} (#{note})", "", line[head], "|#{rule.join("|")}|", *rows.map(&line)].join("\n")
      end
    end
  end
end
