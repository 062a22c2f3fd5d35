# frozen_string_literal: true

require "support/columns"
require "support/statistics"

module Bench
  # The output of bench/tail for one way of waiting: medians of the rounds.
  class TailReport
    HEAD = ["", "fast p50", "p90", "p99", "worst", "slow p50", "p99",
            "p99 of Pando to this", "failed", "unanswered"].freeze
    # The largest allowed ratio of Pando's p99 of fast requests to the other server's, if the app holds the interpreter
    # lock.
    TARGETS = { "puma" => 0.4, "falcon" => 0.5 }.freeze

    # @param wait [String]
    # @param samples [Hash{String => Array<OpenLoad::Result>}] of each server by its name
    # @param labels [Hash{String => String}]
    def initialize(wait, samples, labels)
      @wait = wait
      @samples = samples
      @labels = labels
    end

    def to_s = "the app #{@wait} the interpreter, milliseconds\n#{Columns.new(HEAD, rows)}\n#{lag}"

    # @return [Float, nil] ratio of Pando's p99 of fast requests to another server's
    def ratio(name)
      p99(:fast, "pando") / p99(:fast, name) if @samples.key?("pando") && @samples.key?(name)
    end

    # @return [Hash{String => Boolean}] targets, and whether they were reached
    def targets
      return {} unless @wait == "holds"

      TARGETS.select { |name, _limit| ratio(name) }.to_h do |name, limit|
        ["#{ratio(name).round(2)} of the p99 of #{@labels[name]}, at most #{limit}", ratio(name) <= limit]
      end
    end

    def to_a
      @samples.flat_map do |name, results|
        results.map { |result| { wait: @wait, server: name, **result.to_h.transform_values { |value| plain(value) } } }
      end
    end

    private

    def plain(value) = value.is_a?(Struct) ? value.to_h : value
    def p99(kind, name) = middle(name) { |result| result[kind].p99 }
    def middle(name, &figure) = Statistics.median(@samples.fetch(name).map(&figure))

    def rows
      @samples.keys.map do |name|
        times = [%i[fast p50], %i[fast p90], %i[fast p99], %i[fast worst], %i[slow p50], %i[slow p99]]
                .map { |kind, field| format("%.1f", middle(name) { |result| result[kind][field] }) }
        [@labels[name], *times, ratio(name) ? format("%.2f", ratio(name)) : "-",
         *%i[failed unanswered].map { |field| @samples[name].sum(&field).to_s }]
      end
    end

    # If the generator itself was late, the figures would describe the generator.
    def lag
      worst = @samples.values.flatten.map { |result| result.lag.p99 }.max
      "the generator itself was late by #{worst} ms at its p99"
    end
  end
end
