# frozen_string_literal: true

module Pando
  # A histogram of times, as the reactor counts them (ext/pando/http/histogram.h): how many took how long, in buckets of
  # a quarter of a doubling. Made by processes that read the reactor's statistics.
  #
  # @api private
  class Histogram
    # A millisecond has so many units.
    UNITS = 1024
    BUCKETS = 112
    # The first buckets have one unit each.
    EXACT = 4

    # @return [Array<Integer>] the number of times in each bucket
    attr_reader :counts
    # @return [Float] seconds of all together
    attr_reader :sum

    # @return [Float] seconds: all times in this bucket and those before are shorter
    def self.edge(bucket)
      return (bucket + 1) / (UNITS * 1000.0) if bucket < EXACT

      doubling, quarter = bucket.divmod(4)
      ((5 + quarter) << (doubling - 1)) / (UNITS * 1000.0)
    end

    # Buckets of one record of the control protocol, whose values are short.
    SLICE = 32

    # @param records [Array<Hash{String => Object}>] of one histogram, as {#records} made them
    def self.of(records)
      parts = records.sort_by { |record| record.fetch("first").to_i }
      new(parts.flat_map { |record| record.fetch("counts").to_s.split(",").map(&:to_i) },
          records.sum { |record| record.fetch("seconds").to_f })
    end

    def initialize(counts = [], sum = 0.0)
      @counts = counts
      @sum = sum
    end

    # @return [Array<Hash{Symbol => Object}>] the same, for records of the control protocol
    def records
      last = counts.rindex(&:positive?) || 0
      counts.first(last + 1).each_slice(SLICE).with_index.map do |slice, number|
        { seconds: number.zero? ? sum.round(6) : 0, first: number * SLICE, counts: slice.join(",") }
      end
    end

    def size = counts.sum

    # @param other [Histogram] of the same times, earlier
    def -(other)
      since = counts.each_with_index.map { |count, bucket| [count - other.counts.fetch(bucket, 0), 0].max }
      Histogram.new(since, sum - other.sum)
    end

    # @param share [Float] 0.99 for the 99th percentile
    # @return [Float, nil] seconds that this share of the times stayed below, right to a quarter; nil: there are none
    def percentile(share)
      rank = (size * share).ceil
      return if rank.zero?

      seen = 0
      Histogram.edge(counts.index { |count| (seen += count) >= rank })
    end

    # @param seconds [Float] a power of two of a millisecond
    # @return [Integer] how many were shorter
    def below(seconds)
      units = (seconds * 1000 * UNITS).round
      counts.first((units.bit_length - 2) * 4).sum
    end
  end
end
