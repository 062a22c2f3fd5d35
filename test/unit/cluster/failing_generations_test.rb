# frozen_string_literal: true

require "test_helper"
require_relative "support/generations_case"

# What is borne with, what is given up, and when the server ends for it.
class ClusterFailingGenerationsTest < Minitest::Test
  include ClusterSupport::GenerationsCase

  def test_a_kernel_that_refuses_is_borne_with_for_a_while
    booted(workers: 2)
    reforking
    (1...LAST_TRY).each do
      refuse(cluster.starting.first)
      assert_predicate generations.upcoming, :canary?
      elapse(10)
      cluster.turn
    end
    refuse(cluster.starting.first)

    assert_nil generations.upcoming
    assert_equal LAST_TRY, events("fork.failed").size
    assert_equal [0, 0], cluster.generations_of_workers
  end

  def test_where_others_serve_it_is_tried_for_ever
    booted(workers: 1)
    generations.instance_variable_set(:@give_up, ->(*why) { (@told ||= []).push(why) && false })
    cluster.die(cluster.current_mold).die(cluster.worker_in(0))
    (LAST_TRY + 3).times do
      elapse(60)
      cluster.turn
      cluster.die(cluster.upcoming_mold)
    end

    assert_operator(@told.size, :>=, 3)
    elapse(60)
    cluster.settle
    assert_equal [0], cluster.slots
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
      refuse(cluster.starting.find(&:worker?))
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

    assert_equal "the process could not be started", cluster.given_up.first
  end

  def test_boots_that_keep_failing_end_the_server_when_nobody_is_left
    booted(workers: 1)
    [*cluster.roster.workers, cluster.current_mold].each { |child| cluster.die(child) }
    tries = 0
    until cluster.given_up || tries > 20
      elapse(20)
      cluster.turn
      cluster.die(cluster.upcoming_mold, ClusterSupport.ended(1)) && (tries += 1) if generations.upcoming
    end

    assert_equal LAST_TRY, tries
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
