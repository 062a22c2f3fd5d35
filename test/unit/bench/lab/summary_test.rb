# frozen_string_literal: true

require_relative "../bench_helper"
require "json"
require "support/lab/client"
require "support/lab/journal"
require "support/lab/summary"

# The figures of one run.
class LabSummaryTest < Minitest::Test
  Lived = Bench::Lab::Journal::Lived
  FakeJournal = Struct.new(:processes, :requests)
  FakeWatch = Struct.new(:sights, :workers, :turnovers, :reforks, :fewest)

  def test_idle_cpu_time_is_a_figure_of_its_own
    cpu = summary(idle: { cpu: 0.4, seconds: 10.0 })[:cpu]

    assert_in_delta 0.1, cpu[:overall]
    assert_in_delta 0.04, cpu[:idle]
    assert_in_delta 0.06, cpu[:slices]
  end

  def test_without_others_there_is_no_idle_time
    cpu = summary(idle: { cpu: 0.0, seconds: 0.001 })[:cpu]

    assert_nil cpu[:idle]
    assert_in_delta 0.1, cpu[:slices]
  end

  def test_each_request_knows_its_process
    raw = summary[:raw]

    assert_equal [0, 0, 1, 1, nil, 0, 1, 1, 1, 1], raw[:process]
    assert_equal [0, 2000], raw[:ancestors]
    assert_equal [2, 3, 6, 7, 8, 9], raw[:warm]
  end

  def test_a_moment_without_workers_does_not_count_for_their_memory
    memory = summary(samples: [sample(0, 0.0, 100), sample(5, 0.5, nil), sample(10, 1.0, 200)])[:memory]

    assert_in_delta 150.0, memory[:worker][:average]
    assert_equal 200, memory[:worker][:final]
  end

  def test_a_run_that_ended_before_its_first_request_can_be_written
    assert JSON.generate(summary(samples: [sample(0, 0.0, 100)], measured: 0))
  end

  private

  def summary(idle: { cpu: 0.0, seconds: 0.0 }, samples: [sample(0, 0.0, 100), sample(10, 1.0, 100)], measured: 10)
    sent = Array.new(10) { |index| Bench::Lab::Client::Sent.new(0, index.to_f, 0.1) }
    Bench::Lab::Summary.new(samples: samples, idle: idle, sent: sent, failures: [], journal: journal,
                            watch: FakeWatch.new([], [], [], 0, 4), measured: measured, replacements: [],
                            workers: 4).to_h
  end

  # One request was not recorded.
  def journal
    processes = [Lived.new(1, 0, []), Lived.new(2, 2000, [])]
    numbers = [0, 0]
    requests = [0, 0, 1, 1, nil, 0, 1, 1, 1, 1].each_with_index.filter_map do |process, index|
      process && Bench::Lab::Journal::Served.new(index + 1, processes[process], numbers[process] += 1, 0.01)
    end
    FakeJournal.new(processes, requests)
  end

  def sample(requests, cpu, worker)
    { requests: requests, at: requests.to_f, cpu: cpu, generation: 0, pss: 1, uss: 1, worker: worker,
      worker_uss: worker, worker_rss: worker }
  end
end
