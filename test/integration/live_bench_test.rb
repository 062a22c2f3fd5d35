# frozen_string_literal: true

require "test_helper"
require "support/bench_run"

# bench/live as it is run by hand, small: that connections live through a refork and a reload, and that it measures what
# it says. How large the figures are is not a test's business.
class LiveBenchTest < Minitest::Test
  include Support::BenchRun

  def test_sockets_live_through_a_refork_and_a_reload
    figures = bench("--sections", "sockets", "--sockets", "50", "--reforks", "1", "--reloads", "1")["sockets"]

    assert_equal([[], 0, 0, 0], [figures["targets"].reject { |_words, kept| kept }.keys, figures["held"]["ended"],
                                 figures["unanswered"], figures["requests"]["failed"]])
    assert_equal(["refork web", "reload"], figures["renewals"].map(&:first))
    assert_equal(2, figures["homes"].size, figures["homes"])
    assert_operator(figures["held"]["messages"], :>, 50)
    assert_operator(figures["requests"]["answered"], :>, 0)
    assert_operator(figures["bytes"]["live"].first, :>, 0)
  end

  # It would say so.
  def test_without_drain_they_are_lost
    figures = bench("--sections", "sockets", "--sockets", "50", "--reforks", "0", "--reloads", "1", "--drain",
                    "0")["sockets"]

    assert_operator(figures["held"]["ended"], :>=, 50)
    refute(figures["targets"].values.all?)
  end

  def test_streams_and_a_slow_endpoint
    figures = bench("--sections", "streams,sleeper", "--streams", "20", "--sleepers", "10", "--sleep", "2",
                    "--rate", "50", "--seconds", "2", "--rounds", "1")
    report = figures["streams"]["reports"].first

    assert_equal([20, 0, 0, 0], report.values_at("open", "ended", "wrong", "refused"))
    assert_operator(report["messages"], :>, 20)
    assert_equal([%w[alone beside], %w[alone pool shared]],
                 figures.values.map { |section| section["samples"].keys.sort })
    figures.each_value { |section| assert_operator(section["samples"]["alone"].first["p50"], :>=, 2) }
    assert_equal([0, 0], figures["sleeper"]["samples"]["pool"].first.values_at("failed", "unanswered"))
  end

  private

  def bench(*arguments) = run_bench("live", *arguments, "--ruby", "this").last
end
