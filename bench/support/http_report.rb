# frozen_string_literal: true

require "support/columns"
require "support/statistics"

module Bench
  # The output of bench/http for one number of workers: medians of the rounds, and comparisons.
  class HTTPReport
    MIB = 1024.0 * 1024
    BEST_OF = %w[iodine agoo itsi].freeze
    HEAD = ["", "CPU µs/request", "spread", "x best peer", "x nginx", "requests/s", "errors"].freeze

    # @param run [HTTPRun] that has been called
    # @param labels [Hash{String => String}] of the servers
    def initialize(run, labels)
      @run = run
      @labels = labels
    end

    def to_s = [*cases.map { |kind| "#{kind.name}\n#{Columns.new(HEAD, rows(kind))}" }, memory, *failures].join("\n\n")

    # @return [Array<HTTPCase>]
    def cases = @run.samples.keys.map(&:first).uniq

    # @return [Float, nil] microseconds per request, the median of the rounds; nil: not measured
    def cpu(kind, name)
      samples = @run.samples.fetch([kind, name], [])
      Statistics.median(samples.map(&:cpu)) unless samples.empty?
    end

    # @return [Float, nil]
    def best_peer(kind) = BEST_OF.filter_map { |name| cpu(kind, name) }.min

    def to_a
      @run.samples.map do |(kind, name), samples|
        { **kind.to_h, server: name, pss: @run.memory[name].pss, samples: samples.map(&:to_h) }
      end
    end

    private

    def rows(kind)
      best = best_peer(kind)
      nginx = cpu(kind, "nginx")
      @labels.filter_map do |name, label|
        samples = @run.samples.fetch([kind, name], [])
        row(label, samples, best, nginx) unless samples.empty?
      end
    end

    def row(label, samples, best, nginx)
      times = samples.map(&:cpu)
      [label, format("%.2f", Statistics.median(times)), format("±%.0f%%", Statistics.spread(times) * 100),
       ratio(Statistics.median(times), best), ratio(Statistics.median(times), nginx),
       Statistics.median(samples.map(&:rate)).round.to_s, samples.sum(&:errors).to_s]
    end

    def ratio(value, base) = base ? format("%.2f", value / base) : "-"

    def failures = @run.failures.map { |name, reason| "left out: #{@labels[name]} (#{reason})" }

    def memory
      rows = @run.memory.map do |name, memory|
        [@labels[name], format("%.1f", memory.pss / MIB), memory.processes.to_s]
      end
      Columns.new(["memory after #{HTTPRun::MEMORY_LOAD} s", "tree PSS MiB", "processes"], rows)
    end
  end
end
