# frozen_string_literal: true

require "json"
require "pando/pages/figures"
require "pando/pages/pictures"
require "pando/table"

module Pando
  # `pando pages`: why a worker's memory is private, by use and by what made it so. A Recorder in the worker writes a
  # Recording, from which the command counts the PrivatePages and writes a Report.
  #
  # @api private
  module Pages
    # The report as text, JSON or a page with pictures. All text from the worker is made harmless: another process may
    # have written it.
    class Report
      # Requests in the text's table of those that made most pages private.
      MOST = 10
      COLOURS = { before: "#90a4ae", request: "#ef6c00", compiling: "#c2185b", compile: "#2e7d32",
                  minor_gc: "#4fc3f7", major_gc: "#1565c0", mixed: "#8d6e63" }.freeze
      STYLE = "#{HtmlPage.colours(COLOURS)}svg path { fill: none; } rect { stroke: none; }\n".freeze

      # @param pages [PrivatePages] @param format [String] text, json, html
      # @return [String]
      def self.write(pages, format)
        case format
        when "text" then new(pages).text
        when "json" then "#{JSON.pretty_generate(Figures.new(pages).to_h)}\n"
        when "html" then new(pages).html
        end
      end

      def initialize(pages)
        @pages = pages
        @figures = Figures.new(pages)
      end

      # @return [String]
      def text
        watched = ("Watched: #{@figures.watched}." if @pages.recorded?)
        head = [@figures.title, @figures.facts["ruby"], @figures.compiler, watched].compact
        tables = [kinds, *([groups, requests("most by", most)] if @pages.recorded?)]
        [*head.map { |line| Table.printable(line) }, "", *tables.flat_map { |table| [*table.lines, ""] }, *notes]
          .join("\n") << "\n"
      end

      # @return [String]
      def html = HtmlPage.render(title: @figures.title, lead: lead, sections: sections, style: STYLE)

      private

      def paragraph(lines) = ("<p>#{lines.map { |line| HtmlPage.escape(line) }.join("<br>")}</p>" if lines.any?)

      def lead
        paragraph([@figures.facts["ruby"], @figures.compiler, @figures.watched,
                   "#{format("%.1f", @figures.mebibytes(@pages.total))} MiB are its own."].compact)
      end

      def sections
        legend = HtmlPage.legend(PrivatePages::CAUSES.slice(*@figures.causes))
        { "Private memory by use" => [kinds.html, paragraph(notes)].join,
          "What each request made private" => (legend + Timeline.new(@figures).svg if @pages.recorded?),
          "Where it is" => legend + Map.new(@pages).svg,
          "Requests" => (requests("request", @figures.requests).html if @pages.recorded?) }
      end

      # Without a recording there is but one cause.
      def causes = @pages.recorded? ? @figures.causes : []
      def cause_names = PrivatePages::CAUSES.values_at(*causes)

      def kinds
        rows = @figures.kinds.map { |kind| kind_row(AddressSpace::KINDS[kind], [kind]) }
        Table.new(["MiB", "private", *(%w[copied new] if @pages.copied), *("shared" if @pages.shared), *cause_names],
                  [*rows, kind_row("all", @figures.kinds)])
      end

      def kind_row(name, kinds)
        own, copied, shared = [@pages.private, @pages.copied, @pages.shared].map do |counts|
          kinds.sum { |kind| counts.fetch(kind, 0) } if counts
        end
        row(name, [own, *([copied, own - copied] if copied), *shared,
                   *causes.map { |cause| kinds.sum { |kind| @pages.by_kind_and_cause[[kind, cause]] } }])
      end

      def row(name, counts, *rest) = [name, *counts.map { |count| @figures.mebibytes(count) }, *rest]

      def groups
        rows = @figures.groups.map { |group| row(group.name, [group.pages, *group.causes.values_at(*causes)]) }
        Table.new(["request", "private", *cause_names], rows)
      end

      def requests(title, requests)
        kinds = @figures.kinds.select { |kind| requests.any? { |request| request.kinds[kind].positive? } }
        rows = requests.map do |one|
          row(one.number.to_s, [one.pages, *one.kinds.values_at(*kinds)], one.name)
        end
        Table.new([title, "private", *AddressSpace::KINDS.values_at(*kinds), ""], rows)
      end

      def most = @figures.requests.select { |request| request.causes.any? }.max_by(MOST, &:pages)

      def notes
        smaps = @figures.size("private")
        [("The kernel's sum for this process (smaps_rollup): #{smaps} private." if smaps),
         ("copied: the mold has a page there too, so it was shared until this worker wrote to it." if @pages.copied)]
          .compact
      end
    end
  end
end
