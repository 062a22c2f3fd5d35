# frozen_string_literal: true

require "test_helper"
require_relative "support/simulation"

# What the monitor makes of a child whose self-check does not come back.
class ClusterSelfCheckTest < Minitest::Test
  include ClusterSupport::Clock
  include ClusterSupport::Listening

  def cluster = @cluster ||= ClusterSupport::Simulation.new(workers: 2, check_timeout: 5.0)
  def generations = cluster.generations

  # The next child stands still in a step and dies of it.
  # @return [Child]
  def get_stuck(child = cluster.turn.starting.first)
    cluster.adopt(child)
    cluster.child_events.child_checking(child, "loader")
    child.step_overdue
    cluster.child_events.step_overdue(child)
    cluster.die(child)
    child
  end

  # A slot of the running cluster falls empty.
  def lose_worker
    cluster.die(cluster.worker_in(0))
    elapse(1)
  end

  def failed_checks = events("check.failed").map(&:payload)

  def test_a_step_has_its_time
    cluster.boot
    lose_worker
    child = cluster.turn.starting.first
    cluster.adopt(child)
    cluster.child_events.child_checking(child, "loader")

    assert_equal "loader", child.step
    assert_in_delta now + 5, child.step_deadline, 0.1
  end

  def test_who_is_stuck_is_killed_and_named
    cluster.boot
    lose_worker
    child = get_stuck

    assert_includes child.verdict, "stuck in its self-check: loader"
    assert_equal([[:worker, 0, 0, "loader", "in futex"]], failed_checks.map do |one|
      one.values_at(:role, :slot, :generation, :step, :backtrace)
    end)
    assert_equal 0, generations.current.number, "once may be chance"
  end

  def test_twice_is_the_molds_fault
    cluster.boot
    mold = cluster.current_mold
    lose_worker
    get_stuck
    elapse(1)
    get_stuck
    assert_nil generations.current
    assert_equal "discarded", mold.reason
    elapse(1)
    cluster.settle

    assert_equal [1, :heal], [generations.current.number, generations.current.purpose]
    assert_equal [0, 1], cluster.slots
    assert_includes event_names, "mold.discarded"
    refute_includes event_names, "generation.discarded", "its workers are sound"
  end

  def test_a_new_generation_may_have_it_once
    cluster.boot
    generations.refork("test")
    cluster.ready(cluster.upcoming_mold)
    get_stuck
    assert_predicate generations.upcoming, :canary?
    elapse(1)
    cluster.settle

    assert_equal 1, generations.current.number
  end

  def test_and_is_discarded_the_second_time
    cluster.boot
    generations.refork("test")
    cluster.ready(cluster.upcoming_mold)
    get_stuck
    elapse(1)
    get_stuck
    cluster.settle

    assert_includes events("generation.discarded").last[:reason], "stuck in its self-check: loader"
    assert_equal [0, 0], cluster.generations_of_workers
  end

  def test_a_new_mold_that_is_stuck_is_discarded_at_once
    cluster.boot
    generations.refork("test")
    get_stuck(cluster.upcoming_mold)

    assert_nil generations.upcoming
    assert_equal(%i[mold], failed_checks.map { |one| one[:role] })
  end

  def test_who_has_gone_on_meanwhile_lives
    cluster.boot
    lose_worker
    child = cluster.turn.starting.first
    cluster.adopt(child)
    cluster.child_events.child_checking(child, "loader")
    child.step_overdue
    cluster.examiner.meanwhile = -> { cluster.child_events.child_checking(child, "thread") }
    cluster.child_events.step_overdue(child)

    assert_nil child.verdict
    cluster.ready(child)
    assert_empty failed_checks
  end

  def test_a_check_that_crashes_counts_as_well
    cluster.boot
    lose_worker
    2.times do
      child = cluster.turn.starting.first
      cluster.adopt(child)
      cluster.child_events.child_checking(child, "openssl")
      cluster.die(child, ClusterSupport.killed(11))
      elapse(1)
    end

    assert_equal([["openssl", "signal SEGV"]] * 2, failed_checks.map { |one| one.values_at(:step, :reason) })
    assert_nil generations.current
  end

  def test_one_that_raises_has_come_back
    cluster.boot
    lose_worker
    3.times do
      child = cluster.turn.starting.first
      cluster.adopt(child)
      cluster.child_events.child_checking(child, "self_check at config/pando.rb:3")
      child.failure = "no database"
      cluster.die(child, ClusterSupport.ended(1))
      elapse(5)
    end

    assert_equal([["self_check at config/pando.rb:3", "no database: status 1"]] * 3,
                 failed_checks.map { |one| one.values_at(:step, :reason) })
    assert_equal 0, generations.current.number
  end

  def test_who_is_ended_for_another_reason_has_not_failed
    cluster.boot
    lose_worker
    child = cluster.turn.starting.first
    cluster.adopt(child)
    cluster.child_events.child_checking(child, "loader")
    child.kill("it was not ready in time")
    cluster.die(child)

    assert_empty failed_checks
  end
end
