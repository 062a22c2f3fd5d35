# frozen_string_literal: true

require_relative "bench_helper"
require "support/http_report"
require "support/http_run"
require "support/http_targets"
require "support/memory"

# What bench/http makes of its samples.
class HTTPReportTest < Minitest::Test
  Run = Struct.new(:samples, :memory, :failures)
  LABELS = { "pando" => "Pando", "iodine" => "Iodine", "itsi" => "Itsi", "nginx" => "nginx" }.freeze
  KEPT = Bench::HTTPCase.new(workers: 1, connections: 16, keep: true, large: false)

  def test_servers_are_compared_by_the_medians_of_their_rounds
    report = report("pando" => [9, 8, 100], "iodine" => [10, 12, 11], "itsi" => [20], "nginx" => [6])
    line = report.to_s[/^Pando .*/].split

    assert_equal %w[9.00 0.82 1.50], line.values_at(1, 3, 4)
    assert_equal({ KEPT => 9.0 }, report.cases.to_h { |kind| [kind, report.cpu(kind, "pando")] })
  end

  def test_without_peers_there_is_no_ratio
    assert_equal %w[- -], report("pando" => [9]).to_s[/^Pando .*/].split.values_at(3, 4)
  end

  def test_the_targets_are_those_of_the_cases_measured
    targets = Bench::HTTPTargets.new(report("pando" => [9], "iodine" => [10], "nginx" => [5]))

    verdicts = targets.to_a.map { |line| line[/\A\w+/] }
    assert_equal %w[kept missed], verdicts
    refute_predicate targets, :kept?
    assert_predicate Bench::HTTPTargets.new(report("iodine" => [10])), :kept?
  end

  def test_thirteen_header_fields_are_thirteen
    large = Bench::HTTPCase.new(workers: 1, connections: 16, keep: true, large: true)

    assert_equal 13, large.headers.merge("Host" => "127.0.0.1").size
    assert_equal({ "Connection" => "close" }, Bench::HTTPCase.new(keep: false, large: false).headers)
  end

  private

  def report(times)
    samples = times.to_h do |name, rounds|
      [[KEPT, name], rounds.map { |cpu| Bench::HTTPRun::Sample.new(cpu: cpu, rate: 1.0, errors: 0) }]
    end
    memory = times.transform_values { Bench::Memory.new(pss: 1, uss: 1, worker: 1, processes: 1) }
    Bench::HTTPReport.new(Run.new(samples, memory, {}), LABELS)
  end
end
