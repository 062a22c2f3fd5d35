# frozen_string_literal: true

require "support/columns"
require "support/statistics"

module Bench
  # The output of bench/slow: the normal client with and without slow ones, and the cost of idle connections.
  class SlowReport
    SLOW = ["", "p50 alone", "with slow", "p99 alone", "with slow", "change", "failed",
            "slow: answered", "refused", "cut", "KiB each"].freeze
    IDLE = ["", "idle", "open", "KiB each", "asked", "answered"].freeze
    CHANGE = 10 # percent
    KIB_EACH = 16

    # @param results [Array<SlowRun::Result>]
    # @param options [SlowOptions]
    # @param labels [Hash{String => String}]
    def initialize(results, options, labels)
      @results = results
      @options = options
      @labels = labels
    end

    def to_s = [slow_table, idle_table].compact.join("\n\n")

    # @return [Hash{String => Boolean}] Pando's targets, and whether it reached them
    def targets
      pando = @results.find { |result| result.name == "pando" } or return {}
      { **slow_targets(pando), **idle_targets(pando) }
    end

    private

    def slow_targets(pando)
      return {} if pando.alone.empty?

      percent = (change(pando) * 100).round
      { "p99 changes by #{percent}% beside slow clients, at most #{CHANGE}%" => percent <= CHANGE }
    end

    def idle_targets(pando)
      return {} unless pando.idle

      each = kib(pando.idle_bytes, @options.idle).round(1)
      { "#{each} KiB an idle connection, less than #{KIB_EACH}" => each < KIB_EACH,
        "#{pando.idle[:idle][:open]} of #{@options.idle} connections held" => pando.idle[:idle][:open] == @options.idle,
        "#{pando.poked} of #{@options.poke} requests on them answered" => pando.poked == @options.poke }
    end

    # The median of the rounds' ratios, because the two measurements of a round are close in time.
    def change(result)
      Statistics.median(result.alone.zip(result.beside).map { |alone, beside| beside.fast.p99 / alone.fast.p99 }) - 1
    end

    def slow_table
      rows = @results.reject { |result| result.alone.empty? }.map { |result| slow_row(result) }
      return if rows.empty?

      "one normal client, without and with #{@options.slow} slow ones, milliseconds\n#{Columns.new(SLOW, rows)}"
    end

    def slow_row(result)
      times = %i[p50 p99].product([result.alone, result.beside]).map do |field, samples|
        format("%.2f", Statistics.median(samples.map { |sample| sample.fast[field] }))
      end
      lost = result.beside.sum { |sample| sample.failed + sample.unanswered }
      [@labels[result.name], *times, format("%+.0f%%", change(result) * 100), lost.to_s,
       *%i[answered refused cut].map { |fate| fates(result.clients, fate).to_s },
       format("%.1f", kib(result.slow_bytes, @options.slow))]
    end

    def fates(clients, fate) = clients.sum { |kinds| kinds.values.sum { |kind| kind[fate] } }

    def idle_table
      rows = @results.select(&:idle).map do |result|
        [@labels[result.name], @options.idle.to_s, result.idle[:idle][:open].to_s,
         format("%.1f", kib(result.idle_bytes, @options.idle)), @options.poke.to_s, result.poked.to_s]
      end
      "idle connections\n#{Columns.new(IDLE, rows)}" unless rows.empty?
    end

    def kib(bytes, count) = bytes / 1024.0 / count
  end
end
