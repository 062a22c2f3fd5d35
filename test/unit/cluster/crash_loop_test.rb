# frozen_string_literal: true

require "test_helper"
require_relative "support/generations_case"

# Crash loops are throttled by their rate, and by nothing that happened long ago.
class CrashLoopTest < Minitest::Test
  include ClusterSupport::GenerationsCase

  QUIET = Pando::Cluster::Backoff::QUIET

  def kill(slot = 0) = cluster.die(cluster.worker_in(slot)).turn
  def refilled?(slot = 0) = !cluster.roster.in_slot(slot).empty?
  def throttled = events("restart.throttled").map(&:payload)

  # A worker that serves and is killed again and again, from outside or by its requests.
  def kill_served(times)
    Array.new(times) do
      cluster.serve(cluster.worker_in(0))
      kill
      at_once = refilled?
      elapse((cluster.throttles.due || now) - now + 0.01)
      cluster.settle(2)
      at_once
    end
  end

  def test_a_worker_that_dies_ten_times_in_a_minute_is_damped
    booted(workers: 2)

    assert_equal [true, true, true, *[false] * 7], kill_served(10)
    assert_equal([0.25, 0.5, 1.0, 2.0, 2.0], throttled.first(5).map { |payload| payload[:seconds] })
    assert_equal([[:worker, 0]], throttled.map { |payload| payload.values_at(:role, :slot) }.uniq)
    assert_equal [0, 1], cluster.slots
  end

  def test_one_that_dies_once_an_hour_is_refilled_at_once_for_ever
    booted(workers: 1)
    100.times do
      assert_equal [true], kill_served(1)
      elapse(3600)
    end

    assert_empty throttled
  end

  # What kills them comes from outside, so other requests for a worker of this slot do not wait for it.
  def test_workers_that_die_at_their_requests_are_replaced_at_once_for_ever
    booted(workers: 2)
    at_once = Array.new(20) do
      elapse(Pando::Cluster::RestartThrottles::PACE)
      die_at_work
    end

    assert_equal [true], at_once.uniq
    assert_empty throttled
  end

  def test_who_dies_of_its_first_request_again_and_again_is_replaced_twice_a_second_at_most
    booted(workers: 2)
    elapse(1)
    die_at_work

    refute die_at_work
    elapse(Pando::Cluster::RestartThrottles::PACE)
    cluster.turn

    assert_predicate self, :refilled?
  end

  def test_who_dies_for_want_of_memory_at_its_request_is_damped
    booted(workers: 2)
    at_once = Array.new(5) do
      elapse(1)
      die_at_work { |worker| cluster.oom.victims << worker }
    end

    assert_equal [true, true, true, false, false], at_once
  end

  # @return [Boolean] whether another one is forked at once
  def die_at_work
    elapse((cluster.throttles.due || now) - now)
    cluster.settle(2)
    worker = cluster.worker_in(0)
    worker.row.start_job("GET", "/deadly", nil, nil)
    yield worker if block_given?
    kill
    refilled?.tap { cluster.settle(2) }
  end

  # Before it has served anything: not its mold's fault, and not refilled at full speed all the same.
  def test_who_is_killed_from_outside_right_after_it_was_ready_is_damped
    booted(workers: 1)
    times = Array.new(6) do
      kill
      refilled?.tap do
        elapse((cluster.throttles.due || now) - now + 0.01)
        cluster.settle(2)
      end
    end

    assert_equal [true, true, true, false, false, false], times
    refute_nil generations.current
  end

  def test_it_recovers_when_it_is_quiet
    booted(workers: 1)
    kill_served(6)
    elapse(10 * QUIET)
    cluster.turn

    assert_equal [{ role: :worker, slot: 0 }], events("restart.recovered").map(&:payload)
    assert_equal [true], kill_served(1)
  end

  def test_whom_we_have_ended_ourselves_is_no_crash
    booted(workers: 1)
    10.times do
      cluster.serve(cluster.worker_in(0))
      cluster.worker_in(0).kill("hard timeout")
      kill
      assert_predicate self, :refilled?
      cluster.settle(2)
    end

    assert_empty throttled
  end

  def test_a_mold_that_dies_again_and_again_is_replaced_later_each_time
    booted(workers: 2)
    at_once = Array.new(6) do
      cluster.die(cluster.current_mold).turn
      soon = !generations.upcoming.nil?
      elapse((cluster.throttles.due || now) - now + 0.01)
      cluster.settle(3)
      refute_nil generations.current
      soon
    end

    assert_equal [true, true, true, false, false, false], at_once
    assert_equal([[:mold, 0.25], [:mold, 0.5], [:mold, 1.0]], throttled.map { |one| one.values_at(:role, :seconds) })
    assert_equal [0, 1], cluster.slots
  end

  def test_a_mold_that_dies_now_and_then_is_replaced_at_once_for_ever
    booted(workers: 1)
    20.times do
      cluster.die(cluster.current_mold).turn
      refute_nil generations.upcoming
      cluster.settle(3)
      elapse(QUIET + 1)
    end

    assert_empty throttled
  end

  def test_a_worker_that_fails_to_start_is_damped_with_an_event
    booted(workers: 2)
    kill
    cluster.die(cluster.starting.first, ClusterSupport.ended(1))
    assert_empty(throttled, "one failure has been told by its own event")
    elapse(1)
    cluster.turn
    cluster.die(cluster.starting.first, ClusterSupport.ended(1))

    assert_equal([{ role: :worker, generation: 0, rate: 2, seconds: 0.5 }], throttled.map { |one| one.except(:reason) })
  end

  # Reforks that came to nothing are no boots: a clean image is tried before all is given up.
  def test_failed_reforks_do_not_count_as_failed_boots
    booted(workers: 2)
    Pando::Cluster::Generations::LAST_TRY.times do
      elapse(60)
      generations.refork("test")
      cluster.die(cluster.upcoming_mold, ClusterSupport.ended(1)).turn
    end
    cluster.die(cluster.current_mold)
    cluster.roster.workers.each { |worker| cluster.die(worker) }
    elapse(60)
    cluster.turn
    cluster.die(cluster.upcoming_mold, ClusterSupport.ended(1))

    assert_nil cluster.given_up
  end

  # With `timeout false` a request may last for ever.
  def test_a_source_at_a_request_without_end_is_passed_over_and_not_blamed
    booted(workers: 2, longest_request: nil)
    cluster.serve(cluster.worker_in(0), 5)
    source = cluster.worker_in(0)
    generations.refork("test")
    source.row.start_job("GET", "/stream", nil, nil)
    elapse(25)
    cluster.child_events.spawn_overdue(cluster.upcoming_mold)

    refute_predicate source, :excluded_as_source?
    assert_predicate source, :declined_while_busy?
    assert_equal cluster.worker_in(1), generations.upcoming.source
    source.row.finish_job
    refute_predicate source, :declined_while_busy?
  end

  def test_where_all_are_at_requests_without_end_a_lost_mold_is_booted_from_cold
    booted(workers: 2, longest_request: nil)
    cluster.roster.workers.each { |worker| worker.row.start_job("GET", "/stream", nil, nil) }
    elapse(5)
    cluster.die(cluster.current_mold).turn
    refute_nil generations.upcoming.source
    elapse(25)
    cluster.child_events.spawn_overdue(cluster.upcoming_mold)
    elapse(1)
    cluster.turn

    assert_nil generations.upcoming.source
  end
end
