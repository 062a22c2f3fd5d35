# frozen_string_literal: true

require "json"
require "pando/html_page"
require "pando/measure/figures"
require "pando/table"
require "pando/wording"

module Pando
  module Measure
    # A Result as text, for people at a terminal, as JSON, whose fields docs/measure.md has, or as a ReportPage.
    class Report
      include Wording

      WIDTH = 110
      MIB = 1_048_576.0
      # Rows of the main table: the title, the figure of a Side, its unit, and the figure that the ratio compares.
      ROWS = [
        ["memory on average, MiB", :average, :mib, :average], ["memory at the end, MiB", :final, :mib, :final],
        ["memory before the load, MiB", :first, :mib, :first],
        ["each further worker, MiB", :each_worker, :mib, :each_worker],
        ["CPU time a request, ms", :cpu_each, :ms, :telling_cpu],
        ["latency p50, ms", ->(side) { side.latency(0.5) }, :ms, nil],
        ["latency p99, ms", ->(side) { side.latency(0.99) }, :ms, nil],
        ["reforks", :reforks, :number, nil], ["failed requests", ->(side) { side.errors.values.sum }, :number, nil]
      ].freeze
      HOW = "Memory is the PSS of all processes of a server: a page that several processes share is counted once. " \
            "The average is taken over the requests of the load. Latency is measured by the clients; each client " \
            "sends its next request as soon as it has a response."
      NOT_PROJECTED = "What more workers would take is not computed: a single worker does not show what several " \
                      "workers share. Use -w 2 or more."

      # @param result [Result] @param format [String] text, json or html
      # @return [String]
      def self.write(result, format)
        case format
        when "text" then new(result).to_s
        when "json" then "#{JSON.pretty_generate(result.to_h)}\n"
        when "html" then ReportPage.new(result).to_s
        end
      end

      def initialize(result)
        @result = result
        @sides = result.sides
        @other = result.other
        @ratio_head = @other ? ["Pando/#{@other.name}"] : []
      end

      def to_s
        tables = [measured, projections].compact.map { |titles, rows| table(titles, rows) }
        notes = @result.notes.flat_map { |note| wrap(note, "- ", "  ") }
        parts = [head, omissions, *tables, wrap(projected) + wrap(HOW), notes, [verdict].compact]
        "#{parts.reject(&:empty?).map { |lines| lines.join("\n") }.join("\n\n")}\n"
      end

      private

      def head = [title, *setups.map { |line| "  #{line}" }, *wrap(sent, "  ")]

      def title
        "#{@result.application} in the #{@result.environment} environment: #{names.join(" and ")}, " \
          "#{counted(@result.plan.workers, "worker")} each, #{@result.ruby}"
      end

      def sent
        plan = @result.plan
        "#{counted(thousands(plan.requests), "request")} for each worker, #{counted(plan.clients, "client")}" \
          "#{", servers take turns" if @other}: #{@result.selection.title}."
      end

      def setups = @sides.map { |side| setup(side) }

      def setup(side)
        facts = side.facts
        ["#{side.name} #{facts[:version]}: #{facts[:config] || "no config file"}", threads(*facts[:threads]),
         (facts[:preloaded] ? "preloaded" : "each worker loads the application"),
         facts[:allocator], facts[:jit], ("refork #{facts[:refork]}" if facts[:refork])].compact.join(", ")
      end

      def threads(least, most)
        return "threads unknown" unless most

        "#{least == most ? counted(most, "thread") : "#{least} to #{most} threads"} a worker"
      end

      def left_out
        @result.selection.left_out.map do |reason, all|
          more = all.size - 5
          "#{all.first(5).join(", ")}#{" and #{more} more" if more.positive?}: #{reason}"
        end
      end

      def omissions
        lines = left_out.flat_map { |line| wrap(line, "  ", "    ") }
        lines.empty? ? [] : ["Left out:", *lines]
      end

      # @return [Array(Array<String>, Array<Array<String>>)] the titles and the rows of a table
      def measured
        rows = ROWS.map do |title, value, unit, compared|
          [title, *@sides.map { |side| send(unit, value.to_proc.call(side)) },
           *((compared ? ratio(@result.ratio(&compared)) : "") if @other)]
        end
        [["", *names, *@ratio_head], rows]
      end

      def projected? = @sides.all?(&:projected?)

      def projected
        return NOT_PROJECTED unless projected?

        "Computed from the #{counted(@result.plan.workers, "worker")} that were measured, as averages of the run: " \
          "the memory that a server has once or shares, plus the private memory of one worker for each worker."
      end

      # @return [Array, nil] the same; nil: not {#projected?}
      def projections
        return unless projected?

        rows = Side::WORKERS.map do |number|
          sizes = @sides.map { |side| side.projection.of(number) }
          saved = [ratio(Figures.ratio(sizes.last, sizes.first)), mib(sizes.first - sizes.last)] if @other
          [number.to_s, *sizes.map { |size| mib(size) }, *saved]
        end
        [["workers would take, MiB", *names, *@ratio_head, *("saved" if @other)], rows]
      end

      # The result in one sentence.
      def verdict
        return if @other.nil? || @result.broken

        cpu = @result.ratio(&:telling_cpu)
        "Pando took #{ratio(@result.ratio(&:average))} of #{@other.name}'s memory" \
          "#{" and #{ratio(cpu)} of its CPU time" if cpu}."
      end

      def names = @sides.map(&:name)

      def table(head, rows)
        widths = [head, *rows].transpose.map { |cells| cells.map(&:size).max }
        [head, *rows].map do |cells|
          first, *others = cells.zip(widths)
          [first.first.ljust(first.last), *others.map { |cell, width| cell.rjust(width + 3) }].join.rstrip
        end
      end

      def wrap(text, first = "", others = first)
        lines = text.scan(/\S.{0,#{WIDTH - first.size}}(?=\s|\z)/)
        lines.each_with_index.map { |words, place| "#{place.zero? ? first : others}#{words}" }
      end

      def mib(bytes) = bytes ? thousands((bytes / MIB).round) : "-"
      def ms(seconds) = seconds ? format("%.1f", seconds * 1000) : "-"
      def number(value) = value ? thousands(value) : "-"
      def ratio(value) = value ? format("%.2f", value) : "-"
      def thousands(number) = number.to_s.gsub(/(?<=\d)(?=(\d{3})+\z)/, ",")
    end

    # A Report as a page for a browser, to show to others.
    class ReportPage < Report
      # Each column of its tables but the first has numbers.
      STYLE = <<~CSS
        td + td, th + th { text-align: right; font-variant-numeric: tabular-nums; }
        polyline { fill: none; stroke: currentColor; stroke-width: 2.5; }
        .puma { color: var(--note); } .pando { color: var(--good); }
      CSS

      def to_s
        HtmlPage.render(title: "pando measure: #{@result.application}", lead: lead, sections: sections, style: STYLE)
      end

      private

      def lead
        "<p class=\"verdict\">#{h(verdict || @result.broken || "Pando alone.")}</p>" \
          "<p>#{h(title)}.</p>#{list(setups)}<p>#{h(sent)}</p>"
      end

      def sections
        { "Memory under load" => Chart.new(curves).svg,
          "Measured" => "#{Table.new(*measured).html}<p>#{h(HOW)}</p>",
          "What more workers would take" => "#{Table.new(*projections).html if projected?}<p>#{h(projected)}</p>",
          "Notes" => list(@result.notes), "Requests that were left out" => list(left_out) }
      end

      def curves
        @sides.to_h { |side| [side.name, side.curve.map { |requests, bytes| [requests, bytes / MIB] }] }
      end

      def h(text) = HtmlPage.escape(text)
      def list(lines) = ("<ul>#{lines.map { |line| "<li>#{h(line)}</li>" }.join}</ul>" if lines.any?)

      # The memory of each server over the requests of a worker.
      class Chart
        include HtmlPage::Picture

        WIDTH = 860
        HEIGHT = 360
        # Edges of the grid.
        LEFT = 70
        RIGHT = 770
        TOP = 20
        BOTTOM = 310
        # Lines of the grid, at most, besides the one at zero.
        LINES = 5
        # Pixels between the names at the ends of two curves.
        APART = 14

        # @param curves [Hash{String => Array<Array(Float, Float)>}] requests of a worker and MiB, by server
        def initialize(curves)
          @curves = curves
          requests, memory = curves.values.flatten(1).transpose.map(&:max)
          @longest = [requests, 1].max
          @step = round_step(memory)
          @highest = [(memory / @step).ceil, 1].max * @step
        end

        def svg
          draw(WIDTH, HEIGHT, "memory of each server in MiB over the requests for each worker", [*grid, *axis, *curves])
        end

        private

        # 1, 2 or 5 times a power of ten.
        def round_step(most)
          least = [most.fdiv(LINES), 1].max
          power = 10**Math.log10(least).floor
          [1, 2, 5, 10].map { |factor| factor * power }.find { |step| step >= least }
        end

        def across(requests) = (LEFT + (requests.fdiv(@longest) * (RIGHT - LEFT))).round(1)
        def down(mib) = (BOTTOM - (mib.fdiv(@highest) * (BOTTOM - TOP))).round(1)

        def grid
          0.step(@highest, @step).flat_map do |mib|
            ["<path class=\"edge\" d=\"M#{LEFT} #{down(mib)} H#{RIGHT}\"/>",
             text(LEFT - 8, down(mib) + 4, mib, anchor: "end")]
          end
        end

        def axis
          numbers = 0.step(@longest, round_step(@longest)).map do |requests|
            text(across(requests), BOTTOM + 20, requests.to_i, anchor: "middle")
          end
          [*numbers, text((LEFT + RIGHT) / 2, HEIGHT - 8, "requests for each worker", anchor: "middle"),
           text(LEFT, TOP - 6, "MiB (PSS of all processes)")]
        end

        # From the highest end down, so that no name covers another.
        def curves
          name_at = 0
          @curves.sort_by { |_, points| -points.last.last }.map do |name, points|
            name_at = [down(points.last.last) + 4, name_at + APART].max
            places = points.map { |requests, mib| "#{across(requests)},#{down(mib)}" }
            "<g class=\"#{name.downcase}\"><polyline points=\"#{places.join(" ")}\"/>" \
              "#{text(RIGHT + 6, name_at, name)}</g>"
          end
        end
      end
    end
  end
end
