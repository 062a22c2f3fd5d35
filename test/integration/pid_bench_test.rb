# frozen_string_literal: true

require "test_helper"
require "support/bench_run"

# The benchmark as it is run by hand, short: that it runs, and measures each way.
class PidBenchTest < Minitest::Test
  include Support::BenchRun

  WAYS = ["$$", "Process.pid", "Process.pid, pid_cache", "Pando.pid", "$$ != pid", "ForkCheck"].freeze

  def test_each_way_is_measured
    output, results = bench("--rubies", "this", "--seconds", "0.02", "--rounds", "3")
    ways = results.first["ways"]

    assert_equal([RUBY_VERSION], results.map { |result| result["ruby"][/\d+\.\d+\.\d+/] })
    assert_equal(WAYS, ways.keys)
    assert_equal([3], ways.values.map(&:size).uniq)
    WAYS.each { |way| assert_match(/^#{Regexp.escape(way)} +\d/, output) }
    assert_no_system_call(ways.transform_values(&:min)) if RUBY_VERSION < "3.3"
  end

  private

  # Until Ruby cached the pid itself, each of its own ways was one.
  def assert_no_system_call(fastest)
    assert_operator fastest["Pando.pid"] * 2, :<, fastest["Process.pid"]
    assert_operator fastest["ForkCheck"] * 2, :<, fastest["$$ != pid"]
  end

  def bench(*arguments) = run_bench("pid", *arguments)
end
