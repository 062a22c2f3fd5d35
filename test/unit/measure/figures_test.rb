# frozen_string_literal: true

require "test_helper"
require "pando/measure/figures"
require "pando/measure/process_tree"

# The arithmetic of `pando measure`.
class MeasureFiguresTest < Minitest::Test
  Figures = Pando::Measure::Figures
  Reading = Pando::Measure::ProcessTree::Reading

  def test_percentiles_are_values_that_were_measured
    values = (1..100).to_a.reverse

    assert_equal([50, 99, 100], [0.5, 0.99, 1].map { |share| Figures.percentile(values, share) })
    assert_equal(7, Figures.percentile([7], 0.01))
    assert_nil(Figures.percentile([], 0.5))
  end

  def test_an_average_is_the_area_below_the_curve
    assert_in_delta(15, Figures.average([[0, 10], [10, 20]]))
    assert_in_delta(30, Figures.average([[0, 10], [1, 30], [3, 40]]))
    assert_equal([10.0, nil], [Figures.average([[0, 10]]), Figures.average([])])
  end

  # 300 of which 4 workers have 50 each: 100 are there once.
  def test_further_workers_cost_what_one_has_for_itself
    projection = Figures.projection([[0, reading(300, 50, 4)], [100, reading(300, 50, 4)]])

    assert_equal([100, 50], [projection.base, projection.worker])
    assert_equal([300, 500, 900], [4, 8, 16].map { |workers| projection.of(workers) })
  end

  # While a worker is replaced there is one more.
  def test_a_worker_too_many_is_not_taken_for_what_is_shared
    projection = Figures.projection([[0, reading(300, 50, 4)], [100, reading(350, 50, 5)]])

    assert_equal([100, 50], [projection.base, projection.worker])
  end

  def test_no_ratio_to_nothing
    assert_in_delta(0.5, Figures.ratio(1, 2))
    assert_equal([nil, nil, nil], [Figures.ratio(1, 0), Figures.ratio(1, nil), Figures.ratio(nil, 1)])
  end

  private

  def reading(pss, own, workers) = Reading.new(pss: pss, own: own, workers: workers, processes: workers + 3, cpu: 0)
end
