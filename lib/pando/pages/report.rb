# frozen_string_literal: true

require "json"
require "pando/html_page"
require "pando/pages/private_pages"
require "pando/table"
require "pando/wording"

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

    # The figures of a report, from the private pages and the recording. {#to_h} is the JSON report, in bytes.
    class Figures
      include Wording

      MIB = 1_048_576.0
      NAME = 60 # characters of a request's name

      # A request, and the pages that it and the garbage collections in it made private.
      Request = Struct.new(:number, :name, :causes, :kinds, :faults, :compiled) do
        def pages = causes.values.sum
      end

      # Consecutive requests: the first and the last number, and their pages by cause.
      Group = Struct.new(:from, :to, :causes) do
        def pages = causes.values.sum
        def name = to.zero? ? "before" : [from, to].uniq.join(" to ")
      end

      attr_reader :pages

      def initialize(pages)
        @pages = pages
      end

      def recording = pages.recording
      def facts = recording.facts
      def mebibytes(count) = count && (count * AddressSpace::PAGE / MIB)

      # @return [Array<Symbol>] causes that made any page private
      def causes = PrivatePages::CAUSES.keys.select { |cause| pages.causes[cause].positive? }

      # @return [Array<Symbol>] kinds with any page, private or shared
      def kinds
        AddressSpace::KINDS.keys.select { |kind| pages.private[kind].positive? || pages.shared&.fetch(kind, 0)&.positive? }
      end

      # @return [Array<Request>] in the order of their arrival; pages that became private after the last one come last
      def requests
        @requests ||= begin
          cells = cells_by_job
          (1..[recording.jobs.size, cells.keys.max.to_i].max).map { |number| request(number, cells[number] || []) }
        end
      end

      # @return [Array<Group>] what was private before, then requests in groups of 1, 1, 2, 4, 8, ...
      def groups
        later = requests.map(&:number).group_by { |number| (number - 1).bit_length }
        [[0], *later.values].map do |numbers|
          cells = numbers.flat_map { |number| cells_by_job.fetch(number, []) }
          Group.new(numbers.first, numbers.last, sums(cells, :cause))
        end
      end

      def title
        "Worker #{facts["slot"]} of generation #{facts["generation"]}, pid #{facts["pid"]}, " \
          "#{counted(facts["served"], "request")} after its fork"
      end

      def compiler
        return unless facts["jit"]

        "#{facts["jit"]} has #{size("jit_code")} of code and, in malloc's memory, " \
          "#{size("jit_metadata") || "an unknown amount"} about it, shared or not"
      end

      # @return [String, nil] the extent of the recording
      def watched
        return unless pages.recorded?

        looked = recording.steps.sum(&:microseconds) / 1_000_000.0
        "#{counted(recording.jobs.size, "request")} in #{facts["seconds"]} s, with " \
          "#{collections("minor")} minor and #{counted(collections("major"), "major collection")}; " \
          "looking took #{format("%.2f", looked)} s"
      end

      def size(fact) = facts[fact] && format("%.1f MiB", facts[fact].to_i / MIB)

      def to_h
        both = bytes(pages.by_kind_and_cause).map { |(kind, cause), size| { kind: kind, cause: cause, bytes: size } }
        { worker: Recording::Line.typed(facts),
          **%i[private copied shared causes].to_h { |name| [name, bytes(pages.public_send(name))] },
          kinds_and_causes: both, requests: requests.map { |one| request_to_h(one) } }
      end

      private

      def request_to_h(one)
        { number: one.number, request: one.name, causes: bytes(one.causes), kinds: bytes(one.kinds),
          faults: one.faults, compiled: one.compiled }
      end

      def bytes(counts) = counts&.transform_values { |count| count * AddressSpace::PAGE }

      def collections(which) = facts["#{which}_gcs_after"].to_i - facts["#{which}_gcs"].to_i
      def cells_by_job = @cells_by_job ||= pages.cells.group_by { |cell| recording.steps[cell.step].job }
      def steps_by_job = @steps_by_job ||= recording.steps.group_by(&:job)

      def request(number, cells)
        job = recording.jobs[number - 1]
        name = job ? job["request"].to_s.gsub(/[^[:print:]]/, "?")[0, NAME] : "(after the last one)"
        Request.new(number, name, sums(cells, :cause), sums(cells, :kind),
                    steps_by_job.fetch(number, []).sum(&:faults), job&.fetch("compiled", nil).to_i)
      end

      def sums(cells, what)
        cells.each_with_object(Hash.new(0)) { |cell, sum| sum[cell[what]] += cell.pages }
      end
    end
  end
end
