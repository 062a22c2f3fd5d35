# frozen_string_literal: true

require "pando/html_page"

module Pando
  # A table of a command's report, as text or as HTML. A Float is shown with two decimals ("." for zero), an Integer in
  # groups of three digits; both are right-aligned. An Array becomes a list, HtmlPage::Markup is inserted into a page
  # as it is; any other cell is text, which is escaped.
  #
  # @api private
  class Table
    # Control characters, because an application's text must not control the terminal.
    def self.printable(text) = text.to_s.scrub("?").gsub(/[[:cntrl:]]/) { |char| char.dump[1..-2] }

    def initialize(titles, rows)
      @titles = titles
      @rows = rows
    end

    def lines
      table = [@titles, *@rows].map { |row| row.map { |cell| Table.printable(shown(cell)) } }
      widths = table.transpose.map { |column| column.map(&:size).max }
      table.map do |row|
        row.zip(widths).each_with_index.map { |(cell, width), at| number?(at) ? cell.rjust(width) : cell.ljust(width) }
           .join("  ").rstrip
      end
    end

    # @param classes [Array<String, nil>] of the rows
    # @return [String, nil] nil without rows
    def html(classes = [])
      return if @rows.empty?

      rows = @rows.zip(classes).map { |row, name| html_row("td", row, (" class=\"#{HtmlPage.escape(name)}\"" if name)) }
      "<table>#{html_row("th", @titles) if @titles.any?}#{rows.join}</table>"
    end

    private

    def html_row(tag, row, attribute = nil)
      cells = row.each_with_index.map do |cell, at|
        "<#{tag}#{" class=\"number\"" if number?(at)}>#{markup(cell)}</#{tag}>"
      end
      "<tr#{attribute}>#{cells.join}</tr>"
    end

    def number?(column)
      @numbers ||= @rows.transpose.map { |cells| cells.any?(Numeric) }
      @numbers[column]
    end

    def markup(cell) = cell.is_a?(HtmlPage::Markup) ? cell.html : HtmlPage.escape(shown(cell))

    def shown(cell)
      case cell
      when Float then cell.zero? ? "." : format("%.2f", cell)
      when Integer then cell.to_s.gsub(/(?<=\d)(?=(?:\d{3})+\z)/, ",")
      when Array then cell.join(", ")
      else cell.to_s
      end
    end
  end
end
