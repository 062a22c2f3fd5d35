# frozen_string_literal: true

require_relative "bench_helper"
require "support/statistics"

class StatisticsTest < Minitest::Test
  def test_the_median_is_in_the_middle_whatever_the_order
    assert_in_delta 3.0, Bench::Statistics.median([100, 1, 3])
    assert_in_delta 2.5, Bench::Statistics.median([4, 1, 3, 2])
    assert_in_delta 7.0, Bench::Statistics.median([7])
  end

  def test_the_spread_is_half_the_range_as_a_share_of_the_median
    assert_in_delta 0.1, Bench::Statistics.spread([9, 10, 11])
    assert_in_delta 0.0, Bench::Statistics.spread([5])
  end
end
