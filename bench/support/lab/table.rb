# frozen_string_literal: true

module Bench
  module Lab
    # A table of the report: texts. The first cell of each row names it.
    #
    # @!attribute head [Array<String>]
    # @!attribute rows [Array<Array<String>>]
    Table = Struct.new(:title, :note, :head, :rows) do
      # @return [String] as the docs have tables
      def markdown
        line = ->(cells) { "| #{cells.join(" | ")} |" }
        rule = ["---", *(["---:"] * (head.size - 1))]
        ["#{title} (#{note})", "", line[head], "|#{rule.join("|")}|", *rows.map(&line)].join("\n")
      end
    end
  end
end
