# frozen_string_literal: true

require "json"
require "pando/measure/figures"
require "pando/wording"

module Pando
  module Measure
    # A Result as text, for people at a terminal, as JSON, whose fields docs/measure.md has, or as a ReportPage.
    #
    # @api private
    class Report
      include Wording

      FORMATS = %w[text json html].freeze
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
      private_constant :WIDTH, :MIB, :ROWS, :HOW, :NOT_PROJECTED

      # @param result [Result] @param format [String] one of FORMATS
      # @return [String]
      def self.write(result, format)
        case format
        when "text" then new(result).to_s
        when "json" then "#{JSON.pretty_generate(result.to_h)}\n"
        when "html"
          require "pando/measure/report_page"
          ReportPage.new(result).to_s
        end
      end

      # @param result [Result]
      def initialize(result)
        @result = result
        @sides = result.sides
        @other = result.other
        @ratio_head = @other ? ["Pando/#{@other.name}"] : []
      end

      # @return [String]
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
         facts[:allocator], ("refork #{facts[:refork]}" if facts[:refork])].compact.join(", ")
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
  end
end
