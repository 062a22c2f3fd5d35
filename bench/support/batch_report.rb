# frozen_string_literal: true

require "support/columns"
require "support/statistics"

module Bench
  # The figures of one Ruby as text, and the results that must hold.
  class BatchReport
    WAYS = { "pass" => "Thread.pass", "pop" => "Queue#pop", "batch" => "Pando::Batch" }.freeze
    HEAD = ["job", "waits by", "calls a batch", "saved", "CPU, ms a batch", "of the time", "CPU saved"].freeze
    # Limits as a multiple of polling, for jobs that wait, where the process does little else but poll.
    MOST_CALLS = 0.001
    MOST_CPU = 0.1

    # @param ruby [String] its description
    # @param cases [Hash{String => Hash{String => Array<Hash>}}] rounds by job and way
    def initialize(ruby, threads, cases)
      @ruby = ruby
      @threads = threads
      @cases = cases.transform_values { |ways| ways.transform_values { |rounds| medians(rounds) } }
    end

    def to_s
      rows = @cases.flat_map { |job, ways| ways.map { |way, figures| row(job, way, figures, ways["pass"]) } }
      ["#{@ruby}, 10 jobs a batch, #{@threads} threads", Columns.new(HEAD, rows)].join("\n")
    end

    # @return [Hash{String => Boolean}]
    def targets
      ways = @cases["100ms"] or return {}
      calls, cpu = %w[calls cpu].map { |field| ways["batch"][field] / ways["pass"][field] }
      { format("100 ms: Pando::Batch calls %.6f as often as Thread.pass", calls) => calls <= MOST_CALLS,
        format("100 ms: Pando::Batch takes %.3f of the CPU time", cpu) => cpu <= MOST_CPU }
    end

    private

    def medians(rounds)
      %w[calls wall cpu].to_h { |field| [field, Statistics.median(rounds.map { |round| round[field] })] }
    end

    def row(job, way, figures, passes)
      [way == "pass" ? job : "", WAYS[way], format("%.1f", figures["calls"]),
       saved(figures["calls"], passes["calls"], 4), format("%.3f", figures["cpu"] * 1e3),
       format("%.1f%%", 100 * figures["cpu"] / figures["wall"]), saved(figures["cpu"], passes["cpu"], 1)]
    end

    def saved(figure, passes, digits)
      return "" if figure.equal?(passes)

      figure <= passes ? format("%.#{digits}f%%", 100 * (1 - (figure / passes))) : format("%.1f x", figure / passes)
    end
  end
end
