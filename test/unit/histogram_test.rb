# frozen_string_literal: true

require "test_helper"
require "pando/histogram"

# What is read out of the reactor's histograms.
class HistogramTest < Minitest::Test
  Histogram = Pando::Histogram

  def histogram(counts, sum = 0.0) = Histogram.new(Array.new(112) { |bucket| counts.fetch(bucket, 0) }, sum)

  def test_edges_grow_and_each_doubling_has_four
    edges = Array.new(112) { |bucket| Histogram.edge(bucket) }

    assert_equal edges.sort.uniq, edges
    assert_in_delta 0.001, edges.fetch(35)
    assert_in_delta 0.00125, edges.fetch(36)
    assert_in_delta 0.002, edges.fetch(39)
    (8..111).each { |bucket| assert_in_delta 2, edges[bucket] / edges[bucket - 4], 1e-9 }
  end

  def test_a_percentile_is_the_edge_above
    times = histogram({ 35 => 50, 39 => 48, 75 => 2 })

    assert_equal 100, times.size
    assert_equal [0.001, 0.002, 1.024], [0.5, 0.98, 0.99].map { |share| times.percentile(share).round(9) }
    assert_nil histogram({}).percentile(0.99)
  end

  def test_how_many_were_shorter_than_a_power_of_two
    times = histogram({ 0 => 1, 35 => 2, 36 => 4, 75 => 8, 111 => 16 })

    assert_equal [3, 7, 7, 15], [0.001, 0.002, 0.512, 1.024].map { |seconds| times.below(seconds) }
    assert_equal 15, times.below(65.536)
  end

  def test_the_difference_is_never_negative
    since = histogram({ 3 => 5, 4 => 1 }, 7.5) - histogram({ 3 => 2, 4 => 9 }, 2.5)

    assert_equal [3, 0, 5.0], [since.counts[3], since.counts[4], since.sum]
  end

  def test_there_and_back_by_records
    [histogram({ 0 => 1, 31 => 2, 32 => 3, 111 => 4 }, 12.25), histogram({}), histogram({ 40 => 7 }, 0.5)].each do |one|
      records = one.records.map { |record| record.transform_keys(&:to_s).transform_values(&:to_s) }
      back = Histogram.of(records.reverse)

      assert_equal [one.counts, one.sum], [back.counts + ([0] * (112 - back.counts.size)), back.sum]
    end
  end
end
