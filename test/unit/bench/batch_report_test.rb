# frozen_string_literal: true

require_relative "bench_helper"
require "support/batch_report"

class BatchReportTest < Minitest::Test
  def figures(calls, wall, cpu) = { "calls" => calls, "wall" => wall, "cpu" => cpu }

  def report(batch = figures(10.0, 0.1, 0.001))
    long = { "pass" => [figures(100_000.0, 0.1, 0.1), figures(200_000.0, 0.1, 0.1), figures(900_000.0, 0.1, 0.1)],
             "pop" => [figures(10.0, 0.1, 0.0005)], "batch" => [batch] }
    short = { "pass" => [figures(4.0, 0.001, 0.0005)], "pop" => [figures(10.0, 0.001, 0.0005)],
              "batch" => [figures(10.0, 0.001, 0.001)] }
    Bench::BatchReport.new("a Ruby", 10, { "none" => short, "100ms" => long })
  end

  def test_what_is_saved_and_what_is_not
    lines = report.to_s.lines(chomp: true).map { |line| line.split(/\s{2,}/) }

    assert_includes lines, ["100ms", "Thread.pass", "200000.0", "100.000", "100.0%"]
    assert_includes lines, ["", "Pando::Batch", "10.0", "99.9950%", "1.000", "1.0%", "99.0%"]
    assert_includes lines, ["", "Pando::Batch", "10.0", "2.5 x", "1.000", "100.0%", "2.0 x"]
  end

  def test_what_is_to_be_kept
    assert_equal [true, true], report.targets.values
    assert_equal [false, true], report(figures(300.0, 0.1, 0.001)).targets.values
    assert_equal [true, false], report(figures(10.0, 0.1, 0.02)).targets.values
  end
end
