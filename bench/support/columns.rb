# frozen_string_literal: true

module Bench
  # Rows of text in aligned columns: the first one to the left, the others to the right.
  class Columns
    # @param head [Array<String>]
    # @param rows [Array<Array<String>>] with the same number of cells
    def initialize(head, rows)
      @rows = [head, *rows]
    end

    def to_s
      widths = @rows.transpose.map { |column| column.map(&:size).max }
      @rows.map { |row| line(row, widths) }.join("\n")
    end

    private

    def line(row, widths)
      row.each_with_index.map { |cell, index| index.zero? ? cell.ljust(widths[index]) : cell.rjust(widths[index]) }
         .join("  ").rstrip
    end
  end
end
