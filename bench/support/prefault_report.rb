# frozen_string_literal: true

require "support/columns"

module Bench
  # The cost of workers' first requests with one `prefault` setting, compared with later ones.
  class PrefaultReport
    FIRST = (1..200)
    AGES = [1..1, 2..10, 11..50, 51..200].freeze
    MIB = 1024.0 * 1024

    # @param stage [PrefaultStage]
    # @param steady [Range<Integer>] requests that count as steady
    def initialize(stage, steady)
      @stage = stage
      @steady = steady
      @costs = stage.costs_of_siblings
    end

    # @return [Float] p99 of the first requests, as a multiple of that of the steady ones
    def ratio = p99(FIRST) / p99(@steady)

    def to_s
      ["prefault: #{@stage.setting}", Columns.new(HEAD, rows), given, format("p99, first to steady: %.2f", ratio)]
        .compact.join("\n")
    end

    # @return [Hash]
    def figures
      { setting: @stage.setting, ratio: ratio, rows: rows.map { |row| HEAD.zip(row).to_h },
        given: @stage.given, prepared: @stage.prepared }
    end

    private

    HEAD = ["requests of siblings", "number", "faults", "collections", "CPU ms", "median", "p99"].freeze
    private_constant :HEAD

    def rows
      [*[FIRST, *AGES, @steady].map { |range| row(range.to_s.sub("..", " to "), @costs, range) },
       row("of canaries, #{FIRST.begin} to #{FIRST.end}", @stage.costs_of_canaries, FIRST)]
    end

    def row(name, costs, range)
      costs = costs.select { |cost| range.cover?(cost.number) }
      return [name, "0", *[""] * 5] if costs.empty?

      times = costs.map { |cost| cost.nanoseconds / 1e6 }
      [name, costs.size.to_s, mean(costs.map(&:faults), 1), mean(costs.map(&:collections), 3), mean(times, 3),
       *[0.5, 0.99].map { |share| format("%.3f", quantile(times, share)) }]
    end

    def given
      all = @stage.given
      sets = @stage.prepared.select { |event| event["generation"].positive? }
      return if all.empty?

      format("given to a worker, on average: %<size>.1f MiB of %<whole>.1f, in %<time>.1f ms; found in %<look>.1f ms",
             size: average(all, "prefaulted") / MIB, whole: average(sets, "bytes") / MIB,
             time: average(all, "prefault_seconds") * 1000, look: average(sets, "seconds") * 1000)
    end

    def p99(range)
      quantile(@costs.select { |cost| range.cover?(cost.number) }.map(&:nanoseconds), 0.99).to_f
    end

    def average(events, field) = events.sum { |event| event[field] }.fdiv(events.size)
    def mean(values, digits) = format("%.#{digits}f", values.sum.fdiv(values.size))
    def quantile(values, share) = values.sort[((values.size * share).ceil - 1).clamp(0..)]
  end
end
