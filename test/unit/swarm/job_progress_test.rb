# frozen_string_literal: true

require "test_helper"
require "pando/swarm/job_handler"
require "pando/config/node_line"

# When the deadline of a node's jobs is restarted, and when it is not.
class SwarmJobProgressTest < Minitest::Test
  Runner = Struct.new(:progress, :busy, :done, :failed, :in_progress, :lag, :latency, keyword_init: true) do
    def busy? = busy
    %i[start quiet stop].each { |name| define_method(name) { nil } }
  end
  Plain = Struct.new(:progress, :busy) do
    def busy? = busy
    %i[start quiet stop].each { |name| define_method(name) { nil } }
  end

  # Records what the node reports.
  class Worker
    attr_reader :said, :load

    def initialize = @said = []
    def row = self
    def jobs_finished(*counts) = (@said << [:finished, *counts] unless counts == [0, 0])
    def set_load(*load) = @load = load
    def job_started(*job) = @said << [:started, *job]
    def jobs_rest = @said << [:rest]
  end

  def setup
    @worker = Worker.new
    @runner = Runner.new(progress: 0, busy: false, done: 0, failed: 0, in_progress: 0, lag: nil)
    @progress = Pando::Swarm::JobProgress.new(@worker, checked(@runner), 10.0, 2.0)
  end

  def checked(runner) = Pando::Swarm::CheckedRunner.new(runner, Pando::Config::NodeKind.new)

  def take(**state)
    state.each { |name, value| @runner[name] = value }
    @worker.said.clear
    @progress.update
    @worker.said
  end

  def test_an_idle_node_reports_nothing
    assert_empty take
    assert_equal [0, nil, nil], @worker.load
  end

  def test_the_load
    take(in_progress: 2, lag: 7, latency: 1.2345)

    assert_equal [2, 7, 1235], @worker.load # milliseconds
  end

  def test_the_deadline_starts_with_the_first_job_and_again_with_each_step
    assert_equal [[:started, "jobs", "2 running", 10.0, 12.0]], take(busy: true, in_progress: 2)
    assert_empty take
    assert_equal [[:started, "jobs", "2 running", 10.0, 12.0]], take(progress: 1)
    assert_equal [[:rest]], take(busy: false)
  end

  def test_a_long_job_that_reports_an_advance_gets_a_new_deadline
    take(busy: true, in_progress: 1)
    Pando::Swarm.advance

    assert_equal [[:started, "jobs", "1 running", 10.0, 12.0]], take
    assert_empty take
  end

  def test_jobs_are_counted_once
    assert_equal [[:finished, 5, 1]], take(done: 5, failed: 1)
    assert_empty take
    assert_equal [[:finished, 2, 0]], take(done: 7)
  end

  def test_without_counters_each_step_counts_as_a_job
    worker = Worker.new
    runner = Plain.new(0, false)
    progress = Pando::Swarm::JobProgress.new(worker, checked(runner), nil, 2.0)
    runner.progress = 3
    runner.busy = true
    progress.update

    assert_equal [[:finished, 3, 0], [:started, "jobs", "1 running", nil, nil]], worker.said
  end

  def test_the_end_of_the_runner_clears_the_deadline
    take(busy: true, in_progress: 1, done: 1)
    @worker.said.clear
    @runner.done = 2
    @progress.finish

    assert_equal [[:finished, 1, 0], [:rest]], @worker.said
    assert_equal [0, nil, nil], @worker.load
  end
end
