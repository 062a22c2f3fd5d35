# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"

class CanaryStatisticsTest < Minitest::Test
  ExactTest = Pando::Cluster::Canary::ExactTest
  RankTest = Pando::Cluster::Canary::RankTest

  # Counted by hand: one way in so many.
  def test_the_exact_test
    assert_in_delta 1.0 / 56, ExactTest.p(3, 3, 0, 5), 1e-9
    assert_in_delta 1.0 / (103 * 102 * 101 / 6), ExactTest.p(3, 3, 0, 100), 1e-12
    assert_in_delta 0.5, ExactTest.p(1, 1, 0, 1), 1e-9
    assert_in_delta 1.0, ExactTest.p(0, 20, 5, 100), 1e-9
    assert_in_delta 1.0, ExactTest.p(5, 5, 10, 10), 1e-9
    assert_in_delta 1.0, ExactTest.p(0, 0, 0, 0), 1e-9
  end

  # The lady tasting tea: three of four or better.
  def test_of_fishers_own_example
    assert_in_delta 17.0 / 70, ExactTest.p(3, 4, 1, 4), 1e-9
  end

  def test_large_numbers
    assert_operator ExactTest.p(1_000, 1_000_000, 10, 1_000_000), :<, 1e-100
    assert_in_delta 0.5, ExactTest.p(500, 1_000_000, 500, 1_000_000), 0.05
  end

  # U = 20 of 20, its mean 10, its variance 4 * 5 * 10 / 12.
  def test_ranks_that_do_not_overlap
    assert_in_delta normal(10 / Math.sqrt(4 * 5 * 10 / 12.0)),
                    RankTest.p([[count(6, 7, 8, 9), count(1, 2, 3, 4, 5)]]), 1e-9
  end

  def test_ties_weigh_half
    assert_in_delta 0.5, RankTest.p([[count(1, 2, 3), count(1, 2, 3)]]), 1e-9
    assert_in_delta 0.5, RankTest.p([[count(4, 4), count(4, 4, 4)], [count(1, 3), count(2, 2)]]), 1e-9
  end

  # Each stratum is compared in itself: between them there may be any difference.
  def test_strata
    cold = [count(*[90] * 9, 91), count(*[90] * 9, 91)]
    warm = [count(*[10] * 9, 11), count(*[10] * 9, 11)]

    assert_in_delta 0.5, RankTest.p([cold, warm]), 1e-9
    assert_operator RankTest.p([cold, [count(*[40] * 10), warm.last]]), :<, 0.01
  end

  def test_nothing_can_be_said
    assert_in_delta 1.0, RankTest.p([]), 1e-9
    assert_in_delta 1.0, RankTest.p([[{}, count(1)]]), 1e-9
    assert_in_delta 1.0, RankTest.p([[count(1), {}]]), 1e-9
    assert_in_delta 1.0, RankTest.p([[count(1, 1), count(1, 1)]]), 1e-9
  end

  private

  def normal(deviation) = Math.erfc(deviation / Math.sqrt(2)) / 2
  def count(*values) = values.tally
end
