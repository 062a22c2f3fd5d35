# frozen_string_literal: true

require "support/cow_run"

module Bench
  # The results as text, in MiB.
  class Table
    ROWS = { pss: "tree PSS", uss: "tree USS", worker: "one worker's PSS", processes: "processes" }.freeze
    MIB = 1024.0 * 1024

    def initialize(results)
      @results = results
    end

    def to_s
      rows = [["MiB", "", *CowRun::PHASES.values]] + @results.flat_map { |result| rows(result) }
      widths = rows.transpose.map { |column| column.map(&:size).max }
      rows.map { |row| line(row, widths) }.join("\n")
    end

    private

    def rows(result)
      ROWS.map do |field, name|
        cells = CowRun::PHASES.keys.map { |phase| cell(field, result.phases[phase]) }
        [field == :pss ? result.label : "", name, *cells]
      end
    end

    def cell(field, memory)
      return "-" unless memory

      field == :processes ? memory[field].to_s : format("%.1f", memory[field] / MIB)
    end

    def line(row, widths)
      row.each_with_index.map { |cell, index| index < 2 ? cell.ljust(widths[index]) : cell.rjust(widths[index]) }
         .join("  ").rstrip
    end
  end
end
