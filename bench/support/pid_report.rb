# frozen_string_literal: true

require "support/columns"
require "support/statistics"

module Bench
  # The figures of one Ruby as text, and the results that must hold.
  class PidReport
    # @param ruby [String] its description
    # @param ways [Hash{String => Array<Float>}] nanoseconds per call in each round
    def initialize(ruby, ways)
      @ruby = ruby
      @medians = ways.transform_values { |rounds| Statistics.median(rounds) }
    end

    def to_s
      least = @medians.values.min
      rows = @medians.map do |name, time|
        [name, format("%.1f", time), format("%.1f", 1e3 / time), format("%.2f", time / least)]
      end
      [@ruby, Columns.new(["", "ns a call", "million/s", "x the least"], rows)].join("\n")
    end

    # @return [Hash{String => Boolean}]
    def targets
      ours, theirs = @medians.values_at("Pando.pid", "Process.pid")
      check, plain = @medians.values_at("ForkCheck", "$$ != pid")
      { format("Pando.pid takes %.2f of Process.pid's time", ours / theirs) => ours <= theirs * MOST,
        format("ForkCheck takes %.2f of the time of `$$ != pid`", check / plain) => check <= plain * MOST }
    end

    # Newer versions of Ruby cache the pid themselves, so their own ways call no method of an extension.
    MOST = 2.0
  end
end
