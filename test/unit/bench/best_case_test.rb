# frozen_string_literal: true

require_relative "bench_helper"
require "support/threads/best_case"

class BestCaseTest < Minitest::Test
  def test_a_request_alone_takes_its_own_time
    alone = latencies(0.0001, 20)
    assert_equal([50_000] * 20, alone.map { |latency| latency.round(-1) })
  end

  def test_requests_take_longer_the_more_there_are
    tails = [0.3, 0.6, 0.9].map { |share| latencies(share, 2000).sort[-20] }
    assert_equal tails.sort, tails
    assert_operator tails.first, :>, 50_000
  end

  def test_a_request_waits_for_the_first_worker_whose_lock_is_free
    assert_equal [15_000, 25_000, 35_000], at_once(3, workers: 1, parts: 1)
    assert_equal [15_000, 15_000, 25_000], at_once(3, workers: 2, parts: 1)
  end

  def test_a_request_waits_for_the_lock_of_its_own_worker
    # The second one computes from 10 to 20 ms, while the pause of the first ends at 15.
    assert_equal [35_000, 45_000], at_once(2, workers: 1, parts: 2)
  end

  def test_the_result_is_the_same_each_time
    assert_equal latencies(0.7, 300), latencies(0.7, 300)
  end

  private

  # All arrive at the same moment.
  def at_once(count, **options)
    same = Object.new
    same.define_singleton_method(:rand) { 0.0 }
    Bench::Threads::BestCase.new(compute: 10_000, pause: 5_000, **options).run(0.5, count, random: same)
  end

  def latencies(share, count)
    Bench::Threads::BestCase.new(workers: 2, parts: 4, compute: 2500, pause: 10_000).run(share, count)
  end
end
