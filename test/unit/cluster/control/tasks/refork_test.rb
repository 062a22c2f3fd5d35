# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "../../support/task_case"

# `pando refork`, in a simulated cluster.
class ReforkTaskTest < Minitest::Test
  include ClusterSupport::TaskCase

  # Stands for Pools, and for the monitor.
  class Cluster
    def pools = self
    def several? = false
    def about(_pool) = yield
  end
  Pool = Struct.new(:name, :generations, :options)

  def test_it_ends_when_every_worker_runs_the_next_generation
    booted
    task = begun
    cluster.settle { task.check }

    assert_match(/\Aevery worker runs generation 1, after /, task.achieved)
  end

  def test_a_worker_that_leaves_is_waited_for
    leaving = booted.worker_in(0)
    cluster.rollout.ask_to_leave(leaving, "replaced")
    leaving.row.start_job("GET", "/long", nil, nil)
    task = begun

    assert_equal "the worker in slot 0 is leaving, and is at GET /long", task.obstacle.first
    assert_in_delta 18, task.obstacle.last, 0.1
    assert_nil generations.upcoming
    leaving.row.finish_job

    assert_equal "the worker in slot 0 is leaving, and is at GET /long", task.obstacle.first, "that is no news"
    cluster.settle { task.check }
    assert_match(/\Aevery worker runs generation 1/, task.achieved)
    assert_empty refused
  end

  def test_but_not_for_ever
    leaving = booted.worker_in(0)
    cluster.rollout.ask_to_leave(leaving, "replaced")
    task = begun
    elapse 20
    task.check

    assert_equal "refused: a worker is starting or leaving", task.failure
  end

  def test_what_others_are_refused_meanwhile_is_no_answer
    cluster.rollout.ask_to_leave(booted.worker_in(0), "replaced")
    task = begun
    generations.refork("USR2")

    refute_predicate task, :over?
  end

  def test_another_generation_that_is_on_its_way_is_not_waited_for
    booted
    generations.refork("test")
    elapse 3

    assert_equal "refused: generation 1 (refork) is booting, and that ends within 17 s; begun 3 s ago. Wait for its " \
                 "end, and ask again: `pando status` shows how far it is", begun.failure
  end

  def test_the_request_that_the_source_is_at_ends_in_time
    booted
    2.times { |slot| cluster.worker_in(slot).row.start_job("GET", "/long", 5.0, 7.0) }
    elapse 2
    task = begun

    assert_match(%r{\Athe worker in slot \d is at GET /long\z}, task.obstacle.first)
    left = generations.upcoming.source.hard_deadline - now # on the machine's clock: 5 s, if it made no pause
    assert_in_delta left, task.obstacle.last, 0.001
    assert_operator left, :>=, 4.9
  end

  def test_nodes_run_jobs
    leaving = booted.worker_in(0)
    cluster.rollout.ask_to_leave(leaving, "replaced")
    leaving.row.start_job("jobs", "1 running", nil, nil)
    leaving.row.set_load(1, nil, nil)

    assert_equal "the node in slot 0 is leaving, and is running 1 job", begun(jobs: true).obstacle.first
  end

  def test_a_generation_that_has_booted_is_not_through
    booted
    generations.refork("test")
    generations.upcoming.enter(:ready)

    assert_match(/\Arefused: generation 1 \(refork\) has booted and is not rolled out yet, /, begun.failure)
  end

  def test_none_can_be_had
    booted(workers: 1)
    task = begun
    cluster.die(generations.upcoming.source).turn

    assert_equal "refused: the worker that was to become the mold (slot 0) ended: signal KILL", task.failure
  end

  private

  def begun(jobs: false)
    pool = Pool.new("web", generations, cluster.options.dup.tap { |options| options.jobs = jobs })
    begin_task(Pando::Cluster::Control::Tasks::Refork.new(Cluster.new, pool, false))
  end
end
