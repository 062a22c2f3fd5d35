# frozen_string_literal: true

module Support
  # Finds lines of a config file that are missing in its translation. A line may be there unchanged, after "# was: ", or
  # as a comment, but in the order of the file.
  module DroppedLines
    module_function

    # @return [Array<String>]
    def of(source, translation)
      rows = translation.lines.map(&:strip)
      from = 0
      source.lines.map(&:strip).reject(&:empty?).reject do |line|
        found = (from...rows.size).find { |at| holds?(rows[at], line) }
        from = found + 1 if found
        found
      end
    end

    def holds?(row, line)
      row == line || row.end_with?("# was: #{line}") || (row.start_with?("#") && row.delete_prefix("#").lstrip == line)
    end
  end
end
