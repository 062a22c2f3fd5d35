# frozen_string_literal: true

require "test_helper"
require "pando/swarm/job_handler"
require "pando/config/node_kind"

# When the time of a node's jobs begins anew, and when it does not.
class SwarmJobProgressTest < Minitest::Test
  Runner = Struct.new(:progress, :busy, :done, :failed, :in_progress, :lag, keyword_init: true) do
    def busy? = busy
    %i[start quiet stop].each { |name| define_method(name) { nil } }
  end
  Plain = Struct.new(:progress, :busy) do
    def busy? = busy
    %i[start quiet stop].each { |name| define_method(name) { nil } }
  end

  # Notes what the node tells of itself.
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

  def test_an_idle_node_has_nothing_to_tell
    assert_empty take
    assert_equal [0, nil], @worker.load
  end

  def test_the_time_begins_when_it_falls_to_work_and_with_each_step
    assert_equal [[:started, "jobs", "2 running", 10.0, 12.0]], take(busy: true, in_progress: 2)
    assert_empty take
    assert_equal [[:started, "jobs", "2 running", 10.0, 12.0]], take(progress: 1)
    assert_equal [[:rest]], take(busy: false)
  end

  def test_a_long_job_that_says_it_advances_has_its_time_anew
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

  def test_of_a_runner_that_does_not_count_each_step_is_a_job
    worker = Worker.new
    runner = Plain.new(0, false)
    progress = Pando::Swarm::JobProgress.new(worker, checked(runner), nil, 2.0)
    runner.progress = 3
    runner.busy = true
    progress.update

    assert_equal [[:finished, 3, 0], [:started, "jobs", "1 running", nil, nil]], worker.said
  end

  def test_at_its_end_it_rests
    take(busy: true, in_progress: 1, done: 1)
    @worker.said.clear
    @runner.done = 2
    @progress.finish

    assert_equal [[:finished, 1, 0], [:rest]], @worker.said
    assert_equal [0, nil], @worker.load
  end
end
