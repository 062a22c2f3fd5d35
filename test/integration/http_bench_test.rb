# frozen_string_literal: true

require "test_helper"
require "support/bench_run"

# The benchmarks of the request path as they are run by hand, small, for Pando alone: that they run, measure what they
# say, and leave figures. How large these are is not a test's business.
class HTTPBenchTest < Minitest::Test
  include Support::BenchRun

  parallelize_me! # they wait most of the time

  def test_http_measures_cpu_and_memory
    samples = bench("http", "--servers", "pando,pando-direct,nginx", "--workers", "1", "--connections", "4",
                    "--heads", "headers", "--seconds", "1", "--rounds", "1")

    assert_equal(%w[nginx pando pando-direct], samples.map { |sample| sample["server"] }.uniq.sort)
    assert_equal([true, false], samples.map { |sample| sample["keep"] }.uniq)
    samples.each do |sample|
      assert_operator sample["pss"], :>, 1024 * 1024
      assert_operator sample["samples"].first["cpu"], :>, 0
      assert_operator sample["samples"].first["rate"], :>, 0
    end
  end

  def test_tail_measures_latencies
    samples = bench("tail", "--servers", "pando", "--workers", "2", "--connections", "4", "--load", "20",
                    "--seconds", "2", "--rounds", "1")

    assert_equal(%w[holds yields], samples.map { |sample| sample["wait"] })
    samples.each do |sample|
      assert_operator sample["fast"]["p50"], :>=, 2
      assert_operator sample["slow"]["p50"], :>=, 50
      assert_equal [0, 0], sample.values_at("failed", "unanswered")
    end
  end

  def test_slow_measures_a_normal_client_and_idle_connections
    result = bench("slow", "--workers", "1", "--slow", "30", "--idle", "100", "--poke", "10", "--rate", "50",
                   "--seconds", "2", "--rounds", "1").first

    assert_equal({ "answered" => 110, "refused" => 0, "cut" => 0, "open" => 100 }, result["idle"]["idle"])
    assert_equal 10, result["poked"]
    assert_equal(0, result["clients"].first.values.sum { |kind| kind["cut"] + kind["refused"] })
    assert_equal([100, 100], %w[alone beside].map { |when_| result[when_].first["fast"]["requests"] })
  end

  private

  def bench(name, *arguments) = run_bench(name, *arguments, "--ruby", "this").last
end
