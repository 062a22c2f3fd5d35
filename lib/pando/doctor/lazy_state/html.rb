# frozen_string_literal: true

require "json"
require "pando/doctor/lazy_state/result"
require "pando/html_page"
require "pando/table"

module Pando
  module Doctor
    module LazyState
      # The figures as a part of the doctor's page: tables, and a chart of the memory that requests make private.
      #
      # @api private
      module Html
        # The title of each table, its key in the figures, and its columns.
        TABLES = [
          ["What stays of each request", :requests,
           { request: "Request", objects: "Objects", bytes: "Bytes", code_bytes: "Bytes of code",
             inline_caches: "Inline caches filled", files: "Files loaded", compiled: "Texts compiled" }],
          ["Objects that stay, by line", :lines,
           { place: "Line", allocated: "Allocated at", classes: "Classes", held_by: "Held by", objects: "Objects",
             bytes: "Bytes" }],
          ["Objects that stay, by class", :classes, { class: "Class", objects: "Objects", bytes: "Bytes" }],
          ["Files loaded", :loaded,
           { path: "File", constant: "Constant", place: "Caused at", files: "Files", bytes: "Bytes",
             request: "Request" }],
          ["Text compiled", :compiled,
           { path: "Text", line: "Line", place: "Caused at", bytes: "Bytes", requests: "Requests" }],
          ["Inline caches filled, by file", :inline_caches, { file: "File", cache: "Cache", objects: "Count" }]
        ].freeze
        COLOURS = { ruby_heap: "#b3261e", malloc: "#4f6bb0", compiled_code: "#2e7d4f", library_data: "#8a6d00",
                    stack: "#666666" }.freeze
        STYLE = HtmlPage.colours(COLOURS)

        class << self
          # @param figures [Hash{Symbol => Object}] of a {Result}; keys may have become Strings
          # @return [String] a section of HTML
          def render(figures)
            figures = JSON.parse(JSON.generate(figures), symbolize_names: true)
            tables = TABLES.map { |title, key, columns| table(title, figures[key], columns) }
            parts = [private_memory(figures[:pages] || []), *tables, calls(figures[:calls])]
            "<section class=\"lazy-state\">#{parts.join}</section>"
          end

          private

          def table(title, rows, columns)
            html = Table.new(columns.values, (rows || []).map { |row| row.values_at(*columns.keys) }).html
            html && "<h3>#{HtmlPage.escape(title)}</h3>#{html}"
          end

          def calls(calls)
            return unless calls

            table("Methods that only the first request calls (#{calls[:only_first]} of #{calls[:first_request]})",
                  calls[:methods], { method: "Method", place: "Line" })
          end

          # @param rows [Array<Hash>] of {PrivateMemory#observe}
          def private_memory(rows)
            names = COLOURS.keys.to_h { |use| [use, use.name.tr("_", " ")] }
            bars = rows.map do |row|
              parts = names.map { |use, name| [use, row[use].to_i, "#{name}: #{Thresholds.size(row[use].to_i)}"] }
              name = row[:after].is_a?(Integer) ? "request #{row[:after]}" : row[:after]
              HtmlPage::Bars::Bar.new(name, parts, Thresholds.size(row[:total]))
            end
            chart = HtmlPage::Bars.new("private memory after each request", bars, left: 90).svg
            chart && "<h3>Private memory after each request</h3>#{HtmlPage.legend(names)}#{chart}"
          end
        end
      end
    end
  end
end
