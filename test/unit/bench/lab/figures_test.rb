# frozen_string_literal: true

require_relative "../bench_helper"
require "support/lab/figures"

class LabFiguresTest < Minitest::Test
  Figures = Bench::Lab::Figures

  def test_a_percentile_is_a_value_that_so_many_are_not_above
    values = (1..200).to_a.shuffle(random: Random.new(1))

    assert_equal([198, 100, 200, 1], [0.99, 0.5, 1.0, 0.0].map { |share| Figures.percentile(values, share) })
    assert_nil Figures.percentile([], 0.99)
  end

  def test_weights_of_one_make_the_plain_percentile
    values = Array.new(300) { |index| (index * 7919) % 1000 }
    pairs = values.map { |value| [value, 1.0] }

    [0.5, 0.9, 0.99].each do |share|
      assert_equal Figures.percentile(values, share), Figures.weighted_percentile(pairs, share)
    end
  end

  def test_a_heavy_value_counts_for_many
    assert_equal 10, Figures.weighted_percentile([[10, 98.0], [20, 1.0], [30, 1.0]], 0.98)
    assert_equal 20, Figures.weighted_percentile([[10, 98.0], [20, 1.0], [30, 1.0]], 0.99)
  end

  def test_the_average_of_a_curve_goes_by_its_area_not_by_its_points
    # Ten of a hundred requests at 100, then 90 at 200: however often it was looked at.
    assert_in_delta 190.0, Figures.average([[0, 100], [10, 100], [10, 200], [50, 200], [100, 200]])
    assert_in_delta 150.0, Figures.average([[0, 100], [100, 200]])
    assert_in_delta 7.0, Figures.average([[0, 7]])
    assert_nil Figures.average([])
  end

  def test_a_slope_is_taken_between_the_points_next_to_its_ends
    points = [[0, 0.0], [100, 2.0], [200, 3.0], [300, 4.0]]

    assert_in_delta 4.0 / 300, Figures.slope(points)
    assert_in_delta 0.01, Figures.slope(points, from: 95)
    assert_nil Figures.slope(points, from: 290, to: 300)
  end

  def test_steady_state_is_compared_at_the_mix_of_the_sample
    # Twice as slow in both; but the sample asks for the slow one more often.
    steady = ([[:page, 1.0]] * 90) + ([[:report, 10.0]] * 10)
    sample = ([[:page, 2.0]] * 10) + ([[:report, 20.0]] * 90)

    assert_in_delta 2.0, Figures.mean_ratio_at_equal_mix(sample, steady)
    assert_in_delta 2.0, Figures.ratio_at_equal_mix(sample, steady, 0.5)
    assert_in_delta 2.0, Figures.ratio_at_equal_mix(sample, steady, 0.99)
  end

  def test_what_steady_state_never_saw_is_left_out_of_both
    sample = [[:page, 3.0], [:rare, 500.0]]

    assert_in_delta 3.0, Figures.ratio_at_equal_mix(sample, [[:page, 1.0]], 0.99)
    assert_nil Figures.ratio_at_equal_mix(sample, [], 0.99)
    assert_nil Figures.mean_ratio_at_equal_mix([], [[:page, 1.0]])
  end

  def test_changes_that_follow_one_another_are_one_span
    spans = Figures.spans([[20.0, 20.1], [1.0, 1.1], [1.9, 2.0]], gap: 1.0)

    assert_equal [[1.0, 2.0], [20.0, 20.1]], spans
    assert Figures.within?(spans, 0.5, 1.5)
    assert Figures.within?(spans, 1.2, 1.3)
    refute Figures.within?(spans, 2.1, 19.9)
  end
end
