# frozen_string_literal: true

require "test_helper"
require_relative "support/generations_case"

# What is borne with, what is given up, and when the server ends for it.
class ClusterFailingGenerationsTest < Minitest::Test
  include ClusterSupport::GenerationsCase

  # A wait of a second at most, however long it has lasted.
  def test_a_kernel_that_refuses_is_borne_with_for_ever
    booted(workers: 2)
    reforking
    (LAST_TRY * 10).times do
      refuse(cluster.starting.first)
      assert_predicate generations.upcoming, :canary?
      elapse(1)
      cluster.turn
    end
    cluster.settle

    assert_equal [1, 1], cluster.generations_of_workers
    assert_empty events("generation.discarded")
    assert_equal 0, generations.reforks.failures
  end

  def test_at_the_first_boot_for_a_while_only
    generations.tap { cluster(workers: 1) }.begin_boot
    cluster.ready(cluster.upcoming_mold).turn
    LAST_TRY.times do
      assert_nil cluster.given_up
      refuse(cluster.starting.first)
      elapse(1)
      cluster.turn
    end

    assert_equal "no more processes", cluster.given_up.first
  end

  def test_one_is_tried_while_the_kernel_refuses_and_then_the_others
    booted(workers: 3)
    cluster.roster.workers.each { |worker| cluster.serve(worker) && cluster.die(worker) }
    cluster.turn
    cluster.starting.each { |child| refuse(child) }
    elapse(1)
    3.times { cluster.turn }
    assert_equal 1, cluster.starting.size
    cluster.ready(cluster.starting.first).turn

    assert_equal 2, cluster.starting.size
  end

  def test_a_server_that_has_served_tries_for_ever
    booted(workers: 1)
    cluster.die(cluster.current_mold).die(cluster.worker_in(0))
    (LAST_TRY + 3).times do
      elapse(60)
      cluster.turn
      cluster.die(cluster.upcoming_mold)
    end

    assert_equal LAST_TRY + 3, cluster.borne.size
    elapse(60)
    cluster.settle
    assert_equal [0], cluster.slots
  end

  def test_a_mold_that_the_kernel_refuses_is_tried_for_ever_and_is_no_generation
    booted(workers: 1)
    cluster.spawner.refusing = true
    cluster.die(cluster.current_mold).die(cluster.worker_in(0))
    (LAST_TRY * 10).times do
      cluster.turn
      assert_nil generations.upcoming
      elapse(1)
    end
    cluster.spawner.refusing = false
    cluster.settle

    assert_equal [1], cluster.generations_of_workers
    assert_equal "the process could not be started: no more processes", cluster.borne.last.first
  end

  # It may be the limit of that worker alone.
  def test_a_worker_for_whom_the_kernel_has_no_mold_is_not_asked_again_before_a_clean_image_was_tried
    booted(workers: 2)
    cluster.die(cluster.current_mold)
    sources = Array.new(4) do
      cluster.turn
      source = generations.upcoming.source
      cluster.child_events.child_lost(cluster.upcoming_mold, nil, innocent: true)
      elapse(1)
      source&.slot
    end

    assert_equal([0, 1, nil], sources.first(3).sort_by { |slot| slot || 9 })
    refute_nil sources.last
    assert_empty events("generation.discarded")
    assert cluster.roster.workers.none?(&:excluded_as_source?)
  end

  def passing(child)
    child.passing = true
    cluster.die(child, ClusterSupport.ended(1))
  end

  # A broker that is away, for instance.
  def test_what_a_worker_that_starts_cannot_have_is_no_fault_of_a_release_that_has_served
    booted(workers: 1)
    cluster.serve(cluster.worker_in(0))
    cluster.die(cluster.worker_in(0))
    (LAST_TRY * 5).times do
      cluster.turn
      cluster.adopt(child = cluster.starting.find(&:worker?))
      passing(child)
      elapse(1)
    end
    cluster.settle

    assert_equal [0], cluster.generations_of_workers
    assert_empty events("generation.discarded")
  end

  def test_but_of_one_that_has_not
    booted(workers: 1)
    generations.reload(["other"], [])
    cluster.ready(cluster.upcoming_mold).turn
    cluster.adopt(child = cluster.starting.find(&:worker?))
    passing(child)

    assert_equal([1], events("generation.discarded").map { |event| event[:generation] })
  end

  def test_a_reload_for_which_there_is_no_process
    booted(workers: 1)
    cluster.spawner.refusing = true

    assert_match(/no more processes/, assert_raises(Pando::Error) { generations.reload(["other"], []) }.message)
    assert_predicate generations, :settled?
  end

  def test_a_kernel_that_gives_in_loses_nothing
    booted(workers: 2)
    reforking
    (1...LAST_TRY).each do
      refuse(cluster.starting.first)
      elapse(10)
      cluster.turn
    end
    cluster.settle

    assert_equal [1, 1], cluster.generations_of_workers
  end

  def test_a_hook_that_refuses_is_the_generations_fault
    booted(workers: 2)
    reforking
    refuse(cluster.starting.first, innocent: false)

    assert_nil generations.upcoming
  end

  def test_refusals_do_not_end_the_current_generation_while_somebody_serves
    booted(workers: 2)
    cluster.serve(cluster.worker_in(0))
    cluster.die(cluster.worker_in(0))
    (LAST_TRY * 2).times do
      elapse(31)
      cluster.turn
      refuse(cluster.starting.first)
    end

    assert_equal 0, generations.current.number
    assert_equal [1], cluster.slots
  end

  def test_a_mold_whose_forks_all_fail_is_given_up_when_nobody_serves
    booted(workers: 1)
    cluster.serve(cluster.worker_in(0))
    cluster.die(cluster.worker_in(0))
    LAST_TRY.times do
      elapse(5)
      cluster.turn
      cluster.die(cluster.starting.find(&:worker?), ClusterSupport.ended(1))
    end

    assert_nil generations.current
    assert_nil cluster.given_up
    elapse(1)
    cluster.turn
    assert_nil generations.upcoming.source
    cluster.ready(cluster.upcoming_mold).settle
    assert_equal [1], cluster.generations_of_workers
  end

  def test_a_first_boot_that_fails_is_the_end
    generations.begin_boot
    cluster.upcoming_mold.add_detail("the app's backtrace")
    cluster.upcoming_mold.failure = "no such file (LoadError)"
    cluster.die(cluster.upcoming_mold, ClusterSupport.ended(1))

    assert_equal ["no such file (LoadError): status 1", "the app's backtrace"], cluster.given_up
  end

  def test_a_first_worker_that_fails_is_the_end
    generations.begin_boot
    cluster.ready(cluster.upcoming_mold).turn
    cluster.die(cluster.starting.first, ClusterSupport.ended(1))

    assert_equal "status 1", cluster.given_up.first
  end

  def test_a_mold_that_cannot_be_started_is_the_end
    cluster.spawner.refusing = true
    generations.begin_boot

    assert_equal "the process could not be started: no more processes", cluster.given_up.first
  end

  def test_boots_that_keep_failing_end_nothing_while_somebody_serves
    booted(workers: 1)
    cluster.worker_in(0).row.fork_unsafe!
    cluster.die(cluster.current_mold)
    (LAST_TRY * 2).times do
      elapse(31)
      cluster.turn
      cluster.die(cluster.upcoming_mold, ClusterSupport.ended(1))
    end

    assert_nil cluster.given_up
    assert_equal [0], cluster.slots
    elapse(31)
    cluster.turn
    cluster.ready(cluster.upcoming_mold).settle
    assert_equal (LAST_TRY * 2) + 1, generations.current.number
  end

  def test_the_next_try_waits_longer_each_time
    booted
    delays = Array.new(4) do
      generations.refork("test")
      cluster.die(cluster.upcoming_mold)
      wait = generations.due - now
      elapse(wait + 0.01)
      wait
    end

    [0.25, 0.5, 1.0, 2.0].zip(delays) { |expected, delay| assert_in_delta expected, delay, 0.2 }
    assert_nil generations.due
  end

  def test_a_worker_that_is_ready_but_fails_before_its_first_request_fails_its_generation
    booted(workers: 2)
    reforking
    cluster.ready(canary = cluster.starting.first)
    canary.failure = "after_worker_ready hook raised"
    cluster.die(canary, ClusterSupport.ended(1))
    elapse(1)
    cluster.settle

    assert_equal [0, 0], cluster.generations_of_workers
    assert_includes events("generation.discarded").last[:reason], "after_worker_ready"
  end

  def test_a_worker_that_was_killed_from_outside_fails_nothing
    booted(workers: 2)
    reforking
    cluster.ready(canary = cluster.starting.first)
    cluster.die(canary, ClusterSupport.killed)
    cluster.settle

    assert_equal [1, 1], cluster.generations_of_workers
  end

  # The job that was waiting for it: its generation is tried again, until that job is given up.
  def test_a_node_that_is_killed_as_it_starts
    cluster(workers: 1, jobs: true)
    generations.begin_boot
    cluster.ready(cluster.upcoming_mold).turn
    (1...LAST_TRY).each do
      cluster.adopt(node = cluster.starting.first)
      cluster.die(node)
      elapse(10)
      cluster.turn
    end
    cluster.settle

    assert_equal [0], cluster.generations_of_workers
    assert_empty events("generation.discarded")
  end

  def test_a_node_that_we_kill_as_it_starts
    cluster(workers: 1, jobs: true)
    generations.begin_boot
    cluster.ready(cluster.upcoming_mold).turn
    cluster.adopt(node = cluster.starting.first)
    node.kill("it did not get ready in time")
    cluster.die(node)

    assert_equal 1, events("generation.discarded").size
  end
end
