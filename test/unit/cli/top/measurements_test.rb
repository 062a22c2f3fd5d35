# frozen_string_literal: true

require "test_helper"
require "pando/cli/top"
require "pando/cli/top/measurements"

# Rates and latency come from the difference of two answers of the server.
class TopMeasurementsTest < Minitest::Test
  Measurements = Pando::CLI::Top::Measurements
  Usage = Pando::Sys::Memory::Usage

  def setup
    @now = 100.0
    @measured = []
    usage = lambda { |pid|
      @measured << pid
      @now += @cost.to_f
      Usage.new(3, 2, 5) unless pid == 66
    }
    @measurements = Measurements.new(usage: usage, clock: -> { @now })
  end

  def test_rates_by_process_and_by_status
    take(worker: 10, counts: "0,0,100,0,1,0")
    results = take(worker: 30, counts: "0,0,110,0,1,4", after: 2.0)

    assert_equal({ 2 => 10.0 }, results.rates)
    assert_equal([5.0, 2.0, 0.0], results.classes.values_at("2xx", "5xx", "4xx"))
  end

  def test_the_first_answer_has_no_rates
    results = take(worker: 10, counts: "0,0,100,0,1,0", times: "50")

    assert_equal([{}, {}, [nil, nil]], [results.rates, results.classes, results.latency["duration"]])
  end

  # Pools have a histogram each.
  def test_latency_of_the_last_seconds
    take(times: "0,100", other: "0,0,9")
    results = take(times: "0,100,0,0,0,0,0,0,0,0,0,0,98", other: "0,0,9,0,0,0,0,0,0,0,0,0,0,0,0,0,2")

    assert_equal([12, 16].map { |bucket| Pando::Histogram.edge(bucket) }, results.latency["duration"])
  end

  def test_what_is_older_than_the_window_does_not_count
    take(counts: "0,0,0")
    take(counts: "0,0,1000", after: 1.0)
    7.times { take(counts: "0,0,1000", after: 1.0) }

    assert_in_delta(0.0, take(counts: "0,0,1000", after: 1.0).classes["2xx"])
  end

  def test_another_server_begins_anew
    take(worker: 10, counts: "0,0,100")
    results = take(worker: 3, counts: "0,0,5", after: 1.0, pid: 7)

    assert_equal([{}, {}], [results.rates, results.classes])
  end

  def test_processes_are_measured_in_turns
    @cost = Measurements::BUDGET * 0.6
    pids = (1..5).map { |pid| ["worker", { "pid" => pid }] }
    4.times { @measurements.take([["server", { "pid" => 0 }], *pids]) }

    assert_equal([0, 1, 2, 3, 4, 5, 0, 1], @measured)
  end

  def test_a_process_that_has_ended_has_no_memory
    results = @measurements.take([["server", { "pid" => 1 }], ["worker", { "pid" => 66 }]], everything: true)

    assert_equal([1], results.memory.keys)
  end

  private

  def take(worker: 0, counts: "0", times: "0", other: "0", after: 1.0, pid: 1)
    @now += after
    records = [["server", { "pid" => pid }], ["worker", { "pid" => 2, "requests" => worker }],
               ["responses", { "pool" => "a", "counts" => counts }], ["responses", { "pool" => "b", "counts" => "0" }],
               ["times", { "pool" => "a", "kind" => "duration", "first" => 0, "counts" => times, "seconds" => 0.0 }],
               ["times", { "pool" => "b", "kind" => "duration", "first" => 0, "counts" => other, "seconds" => 0.0 }]]
    @measurements.take(records)
  end
end
