# frozen_string_literal: true

require "support/lab/curve_chart"
require "support/lab/outcomes"
require "support/lab/readme_chart"
require "support/lab/tables"

module Bench
  module Lab
    # The pictures of the report: three per app, Ruby and JIT, and one for the README.
    class Pictures
      MIB = Tables::MIB
      AVERAGED = 5 # samples per point of the CPU curve

      def initialize(outcomes)
        @outcomes = outcomes
      end

      # @return [Hash{String => String}] SVG by name
      def all
        @outcomes.group_by(&:conditions).each_with_object({}) do |(conditions, outcomes), all|
          place = conditions.to_s
          name = conditions.file
          all["#{name}-readme"] = readme(outcomes, conditions)
          all["#{name}-pss"] = memory(outcomes, :pss, "PSS of the tree, MiB, by requests of a worker: #{place}")
          all["#{name}-uss"] =
            memory(outcomes, :worker_uss, "Private memory of a worker, MiB, by its requests: #{place}")
          all["#{name}-cpu"] = chart(outcomes, "CPU time, ms a request: #{place}") { |each| cpu(each) }
        end
      end

      private

      def readme(outcomes, conditions)
        lines = outcomes.map do |each|
          ReadmeChart::Line.new(each.label, each.server[/\A[a-z]+/], each.asked_allocator == "jemalloc",
                                points(each, :pss))
        end
        title = "Memory (PSS) of #{conditions.workers} workers: #{conditions.app}, Ruby #{conditions.ruby}"
        ReadmeChart.new(lines, title: title).to_s
      end

      def memory(outcomes, field, title)
        chart(outcomes, title) { |each| points(each, field) }
      end

      def chart(outcomes, title)
        CurveChart.new(outcomes.map do |each|
          CurveChart::Line.new(each.label, yield(each), marks(each))
        end, title: title).to_s
      end

      def marks(outcome) = outcome.runs.first[:refork_places].map { |place| place / outcome.workers.to_f }

      # In MiB. While there is no worker, there is no figure of it.
      def points(outcome, field)
        samples = outcome.curve.select { |sample| sample[field] }
        samples.map { |sample| [sample[:requests] / outcome.workers.to_f, sample[field] / MIB] }
      end

      def cpu(outcome)
        outcome.curve.each_slice(AVERAGED).each_cons(2).map do |(first, *), (last, *)|
          spent = (last[:cpu] - first[:cpu]) * 1000 / (last[:requests] - first[:requests])
          [(first[:requests] + last[:requests]) / 2.0 / outcome.workers, spent]
        end
      end
    end
  end
end
