# frozen_string_literal: true

require "pando/html_page"
require "pando/pages/report/figures"
require "pando/pages/report/html/map"
require "pando/pages/report/html/timeline"

module Pando
  module Pages
    module Report
      # One page for a browser: the tables, what each request made private, and a map of the memory. Whatever comes
      # from the worker is escaped.
      #
      # @api private
      class Html
        COLOURS = { before: "#90a4ae", request: "#ef6c00", compiling: "#c2185b", compile: "#2e7d32",
                    minor_gc: "#4fc3f7", major_gc: "#1565c0", mixed: "#8d6e63" }.freeze
        STYLE = <<~CSS.freeze
          #{COLOURS.map { |cause, colour| ".#{cause} { fill: #{colour}; stroke: #{colour}; color: #{colour}; }" }.join}
          svg path { fill: none; } rect { stroke: none; }
          td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
        CSS

        def initialize(census)
          @census = census
          @figures = Figures.new(census)
        end

        # @return [String]
        def to_s = HtmlPage.render(title: @figures.title, lead: lead, sections: sections, style: STYLE)

        private

        def h(text) = HtmlPage.escape(text)
        def lead = "<p>#{lines.map { |line| h(line) }.join("<br>")}</p>"

        def lines
          [@figures.facts["ruby"], @figures.compiler, @figures.watched,
           "#{format("%.1f", @figures.mebibytes(@census.total))} MiB are its own."].compact
        end

        def sections
          { "Private memory by use" => kinds, "What each request made private" => timeline,
            "Where it is" => legend + Map.new(@census).svg, "Requests" => requests }
        end

        def timeline = @census.recorded? ? legend + Timeline.new(@figures).svg : nil

        def legend
          marks = @figures.causes.map { |cause| "<span class=\"#{cause}\">&#9632;</span> #{h(Census::CAUSES[cause])}" }
          "<p>#{marks.join(" &#160; ")}</p>"
        end

        def kinds
          causes = @figures.causes
          columns = [@census.private, @census.copied, @census.shared]
          rows = @figures.kinds.map do |kind|
            [AddressSpace::KINDS[kind], *columns.map { |pages| pages&.fetch(kind, 0) },
             *causes.map { |cause| @census.by_kind_and_cause[[kind, cause]] }]
          end
          table(["MiB", "private", "the mold has it too", "shared", *Census::CAUSES.values_at(*causes)], rows)
        end

        def requests
          return unless @census.recorded?

          kinds = @figures.kinds
          rows = @figures.requests.map do |one|
            ["#{one.number}. #{one.name}", one.kinds.values.sum, *one.kinds.values_at(*kinds)]
          end
          table(["request", "private", *kinds.map { |kind| AddressSpace::KINDS[kind] }], rows)
        end

        def table(titles, rows)
          head = titles.map { |title| "<th#{" class=\"number\"" unless title == titles.first}>#{h(title)}</th>" }.join
          body = rows.map { |name, *pages| "<tr><td>#{h(name)}</td>#{pages.map { |count| cell(count) }.join}</tr>" }
          "<table><tr>#{head}</tr>#{body.join}</table>"
        end

        def cell(pages) = "<td class=\"number\">#{format("%.2f", @figures.mebibytes(pages)) if pages}</td>"
      end
    end
  end
end
