# frozen_string_literal: true

require "cgi/escape"

module Bench
  module Lab
    # The report as one self-contained HTML page.
    class Page
      STYLE = <<~CSS
        body { font: 15px/1.45 sans-serif; max-width: 1000px; margin: 2em auto; color: #222 }
        table { border-collapse: collapse; margin: .5em 0 2em }
        th, td { padding: .25em .7em; border-bottom: 1px solid #ddd }
        td + td, th + th { text-align: right } .pass { color: #1b7f5c } .FAIL { color: #c0392b; font-weight: bold }
        .note { color: #666 } svg { max-width: 100%; height: auto }
      CSS

      # @param about [String]
      # @param lines [Array<Requirements::Line>]
      # @param tables [Array<Tables::Table>]
      # @param pictures [Hash{String => String}]
      def initialize(about:, lines:, tables:, pictures:)
        @about = about
        @lines = lines
        @tables = tables
        @pictures = pictures
      end

      def to_s
        <<~HTML
          <!DOCTYPE html>
          <html lang="en"><head><meta charset="utf-8"><title>Pando: the lab</title><style>#{STYLE}</style></head><body>
          <h1>Reforking, measured</h1>
          <p>#{escape(@about)}</p>
          <h2>What must be reached</h2>
          #{requirements}
          #{@pictures.values.join("\n")}
          #{@tables.map { |table| section(table) }.join("\n")}
          </body></html>
        HTML
      end

      private

      def requirements
        rows = @lines.map do |line|
          cells = [line.name, "at most #{line.limit}", line.figure, line.words]
          "<tr>#{cells.map do |cell|
            "<td>#{escape(cell)}</td>"
          end.join}<td class=\"#{line.verdict[/\w+/]}\">#{line.verdict}</td></tr>"
        end
        "<table>#{rows.join("\n")}</table>"
      end

      def section(table)
        head = table.head.map { |cell| "<th>#{escape(cell)}</th>" }.join
        rows = table.rows.map { |row| "<tr>#{row.map { |cell| "<td>#{escape(cell)}</td>" }.join}</tr>" }
        "<h2>#{escape(table.title)}</h2><p class=\"note\">#{escape(table.note)}</p>" \
          "<table><tr>#{head}</tr>\n#{rows.join("\n")}</table>"
      end

      def escape(words) = CGI.escapeHTML(words.to_s)
    end
  end
end
