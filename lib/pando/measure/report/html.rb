# frozen_string_literal: true

require "pando/html_page"
require "pando/measure/report/chart"
require "pando/measure/report/words"

module Pando
  module Measure
    module Report
      # A page for a browser, to show to others.
      #
      # @api private
      class Html
        include Words

        STYLE = <<~CSS
          td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
          polyline { fill: none; stroke-width: 2.5; }
          .other { stroke: var(--note); } .pando { stroke: var(--good); }
          text.other { fill: var(--note); stroke: none; } text.pando { fill: var(--good); stroke: none; }
        CSS
        private_constant :STYLE

        def initialize(result)
          @result = result
        end

        # @return [String]
        def to_s
          HtmlPage.render(title: "pando measure: #{@result.application}", lead: lead, sections: sections, style: STYLE)
        end

        private

        def h(text) = HtmlPage.escape(text)

        def lead
          ["<p class=\"verdict\">#{h(verdict || @result.broken || "Pando alone.")}</p>", "<p>#{h(title)}.</p>",
           list(@result.sides.map { |side| setup(side) }), "<p>#{h(load)}</p>"].join("\n")
        end

        def sections
          ratio = ("Pando/#{@result.other.name}" if @result.other)
          { "Memory under load" => Chart.new(@result.sides).svg,
            "Measured" => "#{table(["", *names, *ratio], rows)}<p>#{h(HOW)}</p>",
            "What more workers would take, MiB" => "#{computed(ratio)}<p>#{h(projected)}</p>",
            "Notes" => (list(@result.notes) if @result.notes.any?),
            "Requests that were left out" => (list(left_out) if left_out.any?) }
        end

        def computed(ratio)
          table(["workers", *names, *ratio, *("saved" if ratio)], projections) if projected?
        end

        def list(lines) = "<ul>#{lines.map { |line| "<li>#{h(line)}</li>" }.join}</ul>"

        def table(head, rows)
          "<table>#{row("th", head)}#{rows.map { |cells| row("td", cells) }.join}</table>"
        end

        def row(tag, cells)
          first, *others = cells
          "<tr><#{tag}>#{h(first)}</#{tag}>" \
            "#{others.map { |cell| "<#{tag} class=\"number\">#{h(cell)}</#{tag}>" }.join}</tr>"
        end
      end
    end
  end
end
