# frozen_string_literal: true

require "pando/measure/report/words"

module Pando
  module Measure
    module Report
      # For people at a terminal.
      #
      # @api private
      class Text
        include Words

        WIDTH = 110
        private_constant :WIDTH

        def initialize(result)
          @result = result
        end

        # @return [String]
        def to_s
          parts = [head, left, measured, computed, wrap(projected) + wrap(HOW), notes, [verdict].compact]
          "#{parts.reject(&:empty?).map { |lines| lines.join("\n") }.join("\n\n")}\n"
        end

        private

        def head = [title, *@result.sides.map { |side| "  #{setup(side)}" }, *wrap(load, "  ")]

        def left
          left_out.empty? ? [] : ["Left out:", *left_out.flat_map { |line| wrap(line, "  ", "    ") }]
        end

        def measured = table(["", *names, *ratio_head], rows)

        def computed
          return [] unless projected?

          table(["workers would take, MiB", *names, *ratio_head, *("saved" if @result.other)], projections)
        end

        def notes = @result.notes.flat_map { |note| wrap(note, "- ", "  ") }
        def ratio_head = @result.other ? ["Pando/#{@result.other.name}"] : []

        def table(head, rows)
          widths = [head, *rows].transpose.map { |cells| cells.map(&:size).max }
          [head, *rows].map { |cells| line(cells, widths) }
        end

        def line(cells, widths)
          first, *others = cells.zip(widths)
          [first.first.ljust(first.last), *others.map { |cell, width| cell.rjust(width + 3) }].join.rstrip
        end

        def wrap(text, first = "", others = first)
          lines = text.scan(/\S.{0,#{WIDTH - first.size}}(?=\s|\z)/)
          lines.each_with_index.map { |words, place| "#{place.zero? ? first : others}#{words}" }
        end
      end
    end
  end
end
