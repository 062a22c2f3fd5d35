# frozen_string_literal: true

require "pando/doctor/lazy_state/html/table"
require "pando/doctor/lazy_state/thresholds"

module Pando
  module Doctor
    module LazyState
      module Html
        # A bar for each moment, stacked by what the memory is used for.
        #
        # @api private
        module PrivateMemory
          COLOURS = { ruby_heap: "#b3261e", malloc: "#4f6bb0", compiled_code: "#2e7d4f", library_data: "#8a6d00",
                      stack: "#666666" }.freeze
          KEYS = [*COLOURS.keys, :after, :total, :milliseconds].freeze
          WIDTH = 720
          LEFT = 90 # for the name of the moment
          RIGHT = 90 # for the sum
          ROW = 22
          private_constant :WIDTH, :LEFT, :RIGHT, :ROW

          # @param rows [Array<Hash>] of {Pages#observe}
          # @return [String] HTML with SVG; empty without rows
          def self.render(rows)
            return "" if rows.empty?

            most = [rows.map { |row| row[:total] }.max, 1].max
            bars = rows.each_with_index.map { |row, at| bar(row, at * ROW, (WIDTH - LEFT - RIGHT).to_f / most) }.join
            %(<h3>Private memory after each request</h3>#{legend}<svg xmlns="http://www.w3.org/2000/svg" role="img" ) +
              %(width="#{WIDTH}" height="#{rows.size * ROW}" font-family="sans-serif" font-size="12">#{bars}</svg>)
          end

          def self.bar(row, top, scale)
            from = LEFT
            parts = COLOURS.map do |use, colour|
              width = (row[use].to_i * scale).round(1)
              from += width
              rectangle(from - width, top, width, colour, "#{name(use)}: #{Thresholds.size(row[use].to_i)}")
            end
            [text(0, top, moment(row[:after])), *parts, text(from + 6, top, Thresholds.size(row[:total]))].join
          end
          private_class_method :bar

          def self.text(left, top, words) = %(<text x="#{left.round(1)}" y="#{top + 15}">#{Table.escape(words)}</text>)
          private_class_method :text

          def self.rectangle(left, top, width, colour, title)
            %(<rect x="#{left.round(1)}" y="#{top + 2}" width="#{width}" height="#{ROW - 4}" fill="#{colour}">) +
              %(<title>#{title}</title></rect>)
          end
          private_class_method :rectangle

          def self.moment(after) = after.is_a?(Integer) ? "request #{after}" : after
          private_class_method :moment

          def self.legend
            marks = COLOURS.map { |use, colour| %(<span style="color:#{colour}">&#9632;</span> #{name(use)}) }
            "<p>#{marks.join(" &#160; ")}</p>"
          end
          private_class_method :legend

          def self.name(use) = use.name.tr("_", " ")
          private_class_method :name
        end
      end
    end
  end
end
