# frozen_string_literal: true

require "json"
require "pando/html_page"
require "pando/pages/figures"
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
      def self.write(pages, format) = new(pages).public_send(format)

      def initialize(pages)
        @pages = pages
        @figures = Figures.new(pages)
      end

      def json = "#{JSON.pretty_generate(@figures.to_h)}\n"

      def text
        watched = ("Watched: #{@figures.watched}." if @pages.recorded?)
        head = [@figures.title, @figures.facts["ruby"], @figures.compiler, watched].compact
        tables = [kinds, *([groups, requests("most by", most)] if @pages.recorded?)]
        [*head.map { |line| Table.printable(line) }, "", *tables.flat_map { |table| [*table.lines, ""] }, *notes]
          .join("\n") << "\n"
      end

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

    # A bar for each request, stacked by cause: the pages that it made private and that still are.
    class Timeline
      include HtmlPage::Picture

      WIDTH = 1000
      HEIGHT = 240
      LEFT = 70
      WIDEST = 40

      def initialize(figures)
        @figures = figures
      end

      def svg
        requests = @figures.requests
        @most = [requests.map(&:pages).max.to_i, 1].max
        @step = [(WIDTH - LEFT).to_f / requests.size, WIDEST].min
        draw(WIDTH, HEIGHT + 24, "memory that requests made private", [*scale, *requests.map { |one| bar(one) }])
      end

      private

      def bar(request)
        left = LEFT + ((request.number - 1) * @step)
        bottom = HEIGHT
        parts = PrivatePages::CAUSES.keys.filter_map do |cause|
          height = request.causes[cause] * (HEIGHT - 10) / @most.to_f
          next if height.zero?

          rectangle(cause, left, bottom -= height, [@step - 1, @step * 0.8].max, height)
        end
        "<g>#{title(summary(request))}#{parts.join}</g>"
      end

      def summary(request)
        "request #{request.number}, #{request.name}: #{size(request.pages)}, #{request.faults} page faults"
      end

      def scale
        last = @figures.requests.size
        ["<path class=\"edge\" d=\"M#{LEFT} 10V#{HEIGHT}H#{WIDTH}\"/>", text(0, 16, size(@most)),
         text(LEFT, HEIGHT + 18, "1"), text(LEFT + (last * @step), HEIGHT + 18, last, anchor: "end")]
      end

      def size(pages) = format("%.2f MiB", @figures.mebibytes(pages))
    end

    # A map of the memory: a line for each 2 MiB in which the worker has private pages, by use and in the order of
    # addresses, with a mark for each private page in the colour of its cause. Between the marks is shared memory, or
    # nothing.
    class Map
      include HtmlPage::Picture

      PAGES = 512 # a line
      WIDTH = 2 # of a page
      HEIGHT = 5 # of a line
      LABEL = 24
      LINES = 1000 # at most of one kind

      def initialize(pages)
        @pages = pages
      end

      def svg
        top = 0
        shapes = AddressSpace::KINDS.flat_map do |kind, name|
          lines = lines(kind)
          next [] if lines.empty?

          label = text(0, top + 16, label(name, lines.size))
          top += LABEL
          [label, *lines.first(LINES).flat_map { |_, runs| line(runs, (top += HEIGHT) - HEIGHT) }]
        end
        draw(PAGES * WIDTH, top + 4, "private pages by address", shapes)
      end

      private

      # @return [Array<Array(Integer, Array)>] a line's number and its runs: first page in the line, pages, cause
      def lines(kind)
        found = Hash.new { |lines, number| lines[number] = [] }
        @pages.runs.each do |first, count, of, cause,|
          next unless of == kind

          while count.positive?
            place = first % PAGES
            fits = [count, PAGES - place].min
            found[first / PAGES] << [place, fits, cause]
            first += fits
            count -= fits
          end
        end
        found.sort
      end

      def line(runs, top)
        runs.group_by(&:last).map do |cause, parts|
          marks = parts.map { |place, count,| "M#{place * WIDTH} #{top}h#{count * WIDTH}" }.join
          "<path class=\"#{cause}\" stroke-width=\"#{HEIGHT - 1}\" d=\"#{marks}\"/>"
        end
      end

      def label(name, lines)
        more = ", #{lines - LINES} more lines are not drawn" if lines > LINES
        "#{name}, a line for 2 MiB#{more}"
      end
    end
  end
end
