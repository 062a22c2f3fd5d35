# frozen_string_literal: true

require "pando/counted"
require "pando/measure/side"

module Pando
  module Measure
    module Report
      # The figures and sentences that the text report and the HTML page share.
      #
      # @api private
      module Words
        include Counted

        MIB = 1_048_576.0
        # Rows of the main table: the title, the figure of a Side, its unit, and the figure that the ratio compares.
        ROWS = [
          ["memory on average, MiB", :average.to_proc, :mib, :average.to_proc],
          ["memory at the end, MiB", :final.to_proc, :mib, :final.to_proc],
          ["memory before the load, MiB", :first.to_proc, :mib, :first.to_proc],
          ["each further worker, MiB", :each_worker.to_proc, :mib, :each_worker.to_proc],
          ["CPU time a request, ms", :cpu.to_proc, :ms, :telling_cpu.to_proc],
          ["latency p50, ms", ->(side) { side.latency(0.5) }, :ms, nil],
          ["latency p99, ms", ->(side) { side.latency(0.99) }, :ms, nil],
          ["reforks", :reforks.to_proc, :number, nil],
          ["failed requests", ->(side) { side.errors.values.sum }, :number, nil]
        ].freeze
        HOW = "Memory is the PSS of all processes of a server: a page that several processes share is counted once. " \
              "The average is taken over the requests of the load. Latency is measured by the clients; each client " \
              "sends its next request as soon as it has an answer."
        NOT_PROJECTED = "What more workers would take is not computed: a single worker does not show what several " \
                        "workers share. Use -w 2 or more."
        private_constant :ROWS, :HOW, :NOT_PROJECTED

        private

        # @return [Array<Array<String>>] title, a cell for each side, and the ratio
        def rows
          ROWS.map do |title, value, unit, compared|
            [title, *@result.sides.map { |side| send(unit, value.call(side)) },
             *((compared ? ratio(@result.ratio(&compared)) : "") if @result.other)]
          end
        end

        def projected? = @result.sides.all?(&:projected?)

        # @return [Array<Array<String>>] a row for each number of workers
        def projections
          Side::WORKERS.map do |number|
            sizes = @result.sides.map { |side| side.projection.of(number) }
            saved = [ratio(Figures.ratio(sizes.last, sizes.first)), mib(sizes.first - sizes.last)] if @result.other
            [number.to_s, *sizes.map { |size| mib(size) }, *saved]
          end
        end

        def names = @result.sides.map(&:name)

        def title
          "#{@result.application} in the #{@result.environment} environment: #{names.join(" and ")}, " \
            "#{counted(@result.plan.workers, "worker")} each, #{@result.ruby}"
        end

        # @return [String, nil] the result in one sentence
        def verdict
          return if @result.other.nil? || @result.broken

          cpu = @result.ratio(&:telling_cpu)
          "Pando took #{ratio(@result.ratio(&:average))} of #{@result.other.name}'s memory" \
            "#{" and #{ratio(cpu)} of its CPU time" if cpu}."
        end

        def load
          "#{counted(thousands(@result.plan.requests), "request")} for each worker, " \
            "#{counted(@result.plan.clients, "client")}" \
            "#{", servers take turns" if @result.other}: #{@result.selection.title}."
        end

        # @param side [Side]
        def setup(side)
          facts = side.facts
          least, most = facts[:threads]
          ["#{side.name} #{facts[:version]}: #{facts[:config] || "no config file"}",
           threads(least, most), (facts[:preloaded] ? "preloaded" : "each worker loads the application"),
           facts[:allocator], ("refork #{facts[:refork]}" if facts[:refork])].compact.join(", ")
        end

        def threads(least, most)
          return "threads unknown" unless most

          "#{least == most ? counted(most, "thread") : "#{least} to #{most} threads"} a worker"
        end

        def projected
          return NOT_PROJECTED unless projected?

          "Computed from the #{counted(@result.plan.workers, "worker")} that were measured, as averages of the run: " \
            "the memory that a server has once or shares, plus the private memory of one worker for each worker."
        end

        def left_out
          @result.selection.left_out.map do |reason, all|
            more = all.size - 5
            "#{all.first(5).join(", ")}#{" and #{more} more" if more.positive?}: #{reason}"
          end
        end

        def mib(bytes) = bytes ? thousands((bytes / MIB).round) : "-"
        def ms(seconds) = seconds ? format("%.1f", seconds * 1000) : "-"
        def number(value) = value ? thousands(value) : "-"
        def ratio(value) = value ? format("%.2f", value) : "-"
        def thousands(number) = number.to_s.gsub(/(?<=\d)(?=(\d{3})+\z)/, ",")
      end
    end
  end
end
