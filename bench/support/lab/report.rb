# frozen_string_literal: true

require "fileutils"
require "support/columns"
require "support/fork_cost"
require "support/lab/comparison"
require "support/lab/outcomes"
require "support/lab/page"
require "support/lab/pictures"
require "support/lab/requirements"
require "support/lab/tables"

module Bench
  module Lab
    # All measurements as text, CSV files, pictures and one page.
    class Report
      # Paths in a run, or what the outcome makes of its runs.
      FIGURES = { reforks: %i[reforks], failed: lambda(&:failures),
                  pss_mean: %i[memory pss average], pss_end: %i[memory pss final],
                  uss_mean: %i[memory uss average], uss_end: %i[memory uss final],
                  worker_uss_end: %i[memory worker_uss final],
                  cpu: %i[cpu overall], cpu_later: %i[cpu later], latency_p50: %i[latency all p50],
                  latency_p99: %i[latency all p99], latency_p99_in: %i[latency inside p99],
                  latency_p99_out: %i[latency outside p99], app_cpu_p99: %i[app_cpu all p99],
                  app_cpu_p99_in: %i[app_cpu inside p99], app_cpu_p99_out: %i[app_cpu outside p99],
                  first_requests: %i[first all requests], first_p99_ratio: ->(each) { each.first_p99_ratio(:all) },
                  first_warm_p99_ratio: ->(each) { each.first_p99_ratio(:warm) }, code_mean: %i[jit average],
                  code_end: %i[jit final], fewest_workers: lambda(&:fewest_workers), kill_cpu: %i[kills cpu],
                  kill_latency: %i[kills latency], cpu_slices: %i[cpu slices], cpu_idle: %i[cpu idle],
                  setup: ->(each) { each.setup.digest } }.freeze
      CONDITIONS = %i[app ruby server tag time_scale asked_allocator allocator yjit workers].freeze
      CURVE = %i[requests at pss uss worker worker_uss cpu generation].freeze

      # @param runs [Array<Hash>]
      def initialize(runs)
        @outcomes = Outcomes.new(runs)
        @requirements = Requirements.new(@outcomes)
      end

      def passed? = @requirements.met?

      def to_s
        tables = Tables.new(@outcomes).all.map do |table|
          "#{table.title} (#{table.note})\n\n#{Columns.new(table.head, table.rows)}"
        end
        [*tables, requirements, *fork_costs].join("\n\n")
      end

      # @param folder [String]
      # @return [void]
      def write(folder)
        FileUtils.mkdir_p(folder)
        pictures = Pictures.new(@outcomes).all
        pictures.each { |name, svg| File.write(File.join(folder, "#{name}.svg"), svg) }
        File.write(File.join(folder, "table.md"), "#{comparisons.map(&:markdown).join("\n\n")}\n")
        File.write(File.join(folder, "summary.csv"), summary)
        File.write(File.join(folder, "curves.csv"), curves)
        File.write(File.join(folder, "report.html"), page(pictures))
      end

      private

      def requirements
        return "Nothing of Pando's refork :auto was measured." if @requirements.lines.empty?

        rows = @requirements.lines.map do |line|
          [line.name, "<= #{line.limit}", line.figure, line.verdict, line.words.to_s]
        end
        Columns.new(["What must be reached", "", "", "", ""], rows).to_s
      end

      # Of the machines and days of the measurements.
      def fork_costs
        costs = @outcomes.flat_map(&:runs).filter_map { |run| run[:fork_cost] }.uniq
        costs.map { |cost| ForkCost.new(*cost.values_at(:read, :write)).to_s }
      end

      def comparisons
        @outcomes.group_by(&:conditions).filter_map do |conditions, outcomes|
          Comparison.new(outcomes).table(conditions.to_s)
        end
      end

      def page(pictures)
        Page.new(about: about, lines: @requirements.lines, tables: Tables.new(@outcomes).all, pictures: pictures).to_s
      end

      def about
        runs = @outcomes.flat_map(&:runs)
        counts = runs.map { |run| run[:requests] / run[:workers] }.uniq.sort
        "Ruby #{runs.map { |run| run[:ruby] }.uniq.join(", ")}; #{counts.join(", ")} requests for each worker; " \
          "#{runs.size} runs. A dot on the axis is a refork. Compare what was measured together: machines differ, " \
          "and their days. #{fork_costs.join(" ")}"
      end

      def summary
        rows = @outcomes.map do |each|
          CONDITIONS.map { |name| each.public_send(name) } +
            FIGURES.values.map { |figure| figure.is_a?(Proc) ? figure.call(each) : each[*figure] }
        end
        csv([CONDITIONS + FIGURES.keys, *rows])
      end

      def curves
        rows = @outcomes.flat_map do |each|
          each.curve.map do |sample|
            [each.app, each.ruby, each.server, each.tag, each.time_scale, each.asked_allocator, each.yjit,
             *sample.values_at(*CURVE), each.setup.digest]
          end
        end
        csv([[:app, :ruby, :server, :tag, :time_scale, :allocator, :yjit, *CURVE, :setup], *rows])
      end

      # Only names and numbers, which need no quotes: the csv library is no longer a default gem of Ruby.
      def csv(rows) = rows.map { |row| "#{row.join(",")}\n" }.join
    end
  end
end
