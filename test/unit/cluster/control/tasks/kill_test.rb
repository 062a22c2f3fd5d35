# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "../../support/task_case"

# `pando kill`, in a simulated cluster.
class KillTaskTest < Minitest::Test
  include ClusterSupport::TaskCase

  Pool = Struct.new(:options)

  def kill(worker)
    begin_task(Pando::Cluster::Control::Tasks::Kill.new(nil, Pool.new(ClusterSupport.options), worker))
  end

  def test_it_ends_with_the_worker
    booted
    worker = cluster.worker_in(0)
    task = kill(worker)
    refute_predicate task, :over?
    cluster.die(worker, ClusterSupport.killed)

    assert_match(/\Athe worker in slot 0 \(pid \d+\) was killed; another one takes its place\z/, task.achieved)
  end

  def test_no_worker_takes_the_place_of_one_that_was_leaving
    assert_match(/was killed\z/, killed_while_it_leaves(ClusterSupport.killed))
  end

  # Its end is no news to the log: `worker.exited`.
  def test_it_ends_with_a_worker_that_has_left_before
    assert_match(/\Athe worker in slot 0 \(pid \d+\) has ended\z/, killed_while_it_leaves(ClusterSupport.ended))
  end

  def killed_while_it_leaves(ending)
    booted
    worker = cluster.worker_in(0)
    cluster.rollout.ask_to_leave(worker, "scaled down")
    task = kill(worker)
    cluster.die(worker, ending)
    task.achieved
  end

  # A generation that was discarded while this worker started.
  def test_it_ends_with_a_worker_that_never_became_ready_and_is_not_wanted
    booted
    generations.refork("test")
    cluster.ready(cluster.upcoming_mold)
    cluster.turn
    worker = cluster.starting.first
    cluster.roster.call_off(worker.generation, "its canary failed")
    task = kill(worker)
    cluster.die(worker, ClusterSupport.killed)

    assert_match(/has ended\z/, task.achieved)
  end
end
