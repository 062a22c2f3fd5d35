# frozen_string_literal: true

require "test_helper"
require "pando/admin/exposition"

# Metrics as text: Prometheus 0.0.4 and OpenMetrics 1.0.
class AdminExpositionTest < Minitest::Test
  Family = Pando::Admin::Family
  COUNTER = Family.new("pando_waits_seconds_total", :counter, "seconds", "Time.", { { pool: "web" } => 1.5 }).freeze
  GAUGE = Family.new("pando_things", :gauge, nil, "Things \\ \"quoted\"\nhere.", { {} => 3 }).freeze

  def prometheus(*families) = Pando::Admin::Exposition.new.write(families)
  def openmetrics(*families) = Pando::Admin::Exposition.new(openmetrics: true).write(families)

  def test_a_counter_in_both_formats
    assert_equal(<<~TEXT, prometheus(COUNTER))
      # HELP pando_waits_seconds_total Time.
      # TYPE pando_waits_seconds_total counter
      pando_waits_seconds_total{pool="web"} 1.5
    TEXT
    assert_equal(<<~TEXT, openmetrics(COUNTER))
      # HELP pando_waits_seconds Time.
      # TYPE pando_waits_seconds counter
      # UNIT pando_waits_seconds seconds
      pando_waits_seconds_total{pool="web"} 1.5
      # EOF
    TEXT
  end

  def test_help_is_escaped
    assert_includes(prometheus(GAUGE), "# HELP pando_things Things \\\\ \"quoted\"\\nhere.\n")
    assert_includes(openmetrics(GAUGE), "# HELP pando_things Things \\\\ \\\"quoted\\\"\\nhere.\n")
  end

  def test_label_values_are_escaped
    family = Family.new("pando_things", :gauge, nil, "Things.", { { of: "a\\b\"c\nd", and: "é" } => 1 })

    assert_includes(prometheus(family), "pando_things{of=\"a\\\\b\\\"c\\nd\",and=\"é\"} 1\n")
  end

  def test_numbers_that_are_none
    family = Family.new("pando_things", :gauge, nil, "Things.",
                        { { n: 1 } => Float::INFINITY, { n: 2 } => -Float::INFINITY, { n: 3 } => Float::NAN })

    assert_equal(%w[+Inf -Inf NaN], prometheus(family).lines.drop(2).map { |line| line.split.last })
  end

  def test_a_family_without_values_is_left_out
    assert_empty(prometheus(Family.new("pando_things", :gauge, nil, "Things.", {})))
    assert_equal("# EOF\n", openmetrics)
  end

  def test_a_histogram
    counts = Array.new(Pando::Histogram::BUCKETS, 0)
    counts[0] = 1 # a microsecond
    counts[50] = 3 # some 9 ms
    counts[-1] = 1
    histogram = Pando::Histogram.new(counts, 75.5)
    family = Family.new("pando_wait_seconds", :histogram, "seconds", "Time.", { { pool: "web" } => histogram })

    head, *buckets, infinite, sum, count = prometheus(family).lines(chomp: true).drop(1)
    assert_equal("# TYPE pando_wait_seconds histogram", head)
    assert_equal(17, buckets.size)
    assert_equal(['pando_wait_seconds_bucket{pool="web",le="0.001"} 1',
                  'pando_wait_seconds_bucket{pool="web",le="65.536"} 4'], buckets.values_at(0, -1))
    assert_equal(['pando_wait_seconds_bucket{pool="web",le="+Inf"} 5', 'pando_wait_seconds_sum{pool="web"} 75.5',
                  'pando_wait_seconds_count{pool="web"} 5'], [infinite, sum, count])
  end
end
