# frozen_string_literal: true

require_relative "../bench_helper"
require "support/lab/matched_ratio"

# A ratio of percentiles, and how far it may be off.
class LabMatchedRatioTest < Minitest::Test
  Ratio = Bench::Lab::MatchedRatio

  def test_kinds_are_compared_with_themselves
    # Twice as slow in both; but the sample asks for the slow one more often.
    sample = requests([[:page, 2]] * 10) + requests([[:report, 20]] * 90)
    baseline = requests([[:page, 1]] * 90) + requests([[:report, 10]] * 10)

    assert_in_delta 2.0, Ratio.new(sample, baseline).value
  end

  def test_the_interval_holds_the_value_and_is_the_same_each_time
    ratio = noisy(processes: 12)
    low, high = ratio.interval

    assert_operator low, :<=, ratio.value
    assert_operator high, :>=, ratio.value
    assert_operator low, :<, high
    assert_equal ratio.interval, noisy(processes: 12).interval
  end

  def test_processes_that_are_alike_leave_no_doubt
    sample = (0...4).flat_map { |process| requests([[:page, 30]] * 50, process) }
    baseline = (0...4).flat_map { |process| requests([[:page, 20]] * 50, process) }

    assert_equal [1.5, 1.5], Ratio.new(sample, baseline).interval
  end

  def test_one_slow_process_leaves_much_doubt
    sample = (0...4).flat_map { |process| requests([[:page, process.zero? ? 60 : 20]] * 50, process) }
    baseline = (0...4).flat_map { |process| requests([[:page, 20]] * 50, process) }

    assert_equal [1.0, 3.0], Ratio.new(sample, baseline).interval
  end

  def test_without_processes_or_with_one_there_is_no_interval
    assert_nil Ratio.new(requests([[:page, 2]], nil), requests([[:page, 2]], nil)).interval
    assert_nil Ratio.new(requests([[:page, 2]]), requests([[:page, 2]])).interval
    assert_nil Ratio.new([], []).interval
    assert_nil Ratio.new([], []).value
  end

  def test_a_draw_of_each_process_once_is_the_value
    ratio = noisy(processes: 12)

    assert_in_delta ratio.value, ratio.send(:ratio, [1] * 12)
  end

  private

  def requests(pairs, process = 0) = pairs.map { |kind, cpu| Ratio::Request.new(kind, cpu, process) }

  def noisy(processes:)
    random = Random.new(5)
    halves = Array.new(2) do
      (0...processes).flat_map do |process|
        requests(Array.new(100) { [random.rand(4), 1 + random.rand(1000 + (process * 50))] }, process)
      end
    end
    Ratio.new(*halves)
  end
end
