# frozen_string_literal: true

require "test_helper"
require "support/bench_run"

# bench/admin as it is run by hand, small: that it counts and finds what it says. How large the figures are is not a
# test's business.
class AdminBenchTest < Minitest::Test
  include Support::BenchRun

  def test_scrapes_and_kills
    _, figures = run_bench("admin", "--sections", "scrapes,kills", "--workers", "2", "--scrapes", "2", "--interval",
                           "2", "--kills", "2", "--rounds", "1", "--ruby", "this")
    scrapes, kills = figures.values_at("scrapes", "kills")
    round = scrapes["rounds"].first

    assert_equal([2, 2], [scrapes["idle"], scrapes["stuck"]].map(&:size))
    assert_operator(round["with"]["cpu"]["admin process"], :>, round["without"]["cpu"]["admin process"])
    assert_equal([2, 0], [kills["absences"].size, kills["lost"]])
    assert_operator(kills["absences"].min, :>, 0)
    assert_operator(kills["sent"], :>, 100)
  end
end
