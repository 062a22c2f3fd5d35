# frozen_string_literal: true

require "test_helper"
require_relative "support/evaluation_case"

# A generation on trial, and watched, in a simulated cluster.
class CanaryEvaluationTest < Minitest::Test
  include CanarySupport::EvaluationCase

  def test_the_canary_serves_beside_all_the_old_ones
    on_trial(workers: 3)
    old = cluster.roster.ready_workers - [canary]

    assert_equal [3, 1], [old.size, generations.upcoming.number]
    serve(canary, 20)
    pass 5
    assert_predicate generations.upcoming, :canary?, "it has not served for long enough"
    assert_empty cluster.leaving
    pass 6
    assert_equal([1], events("canary.passed").map { |event| event[:generation] })
    cluster.settle
    assert_equal [1] * 3, cluster.generations_of_workers
  end

  def test_after_a_failed_refork_the_next_one_must_prove_as_much_as_the_first
    booted(workers: 2, canary: TERMS)
    [false, false, true].each do |failure|
      fail_once if failure
      begin_trial
      prove
      generations.end_watch("test")
    end

    assert_equal([10, 1, 10], events("canary.serving").map { |event| event[:seconds] })
  end

  def test_until_it_has_served_enough
    on_trial
    serve(canary, 19)
    pass 20
    assert_predicate generations.upcoming, :canary?
    serve(canary, 1)
    pass 1

    assert_predicate generations.upcoming, :rolling?
  end

  # By the time at which it is taken for stuck the trial would long be over.
  def test_a_canary_that_stands_still_while_nobody_asks_for_anything
    on_trial
    cluster.hung << canary
    pass 70
    assert_predicate generations.upcoming, :canary?, "it is not known what is wrong with it"
    canary.kill("it stood still for 70 s")
    cluster.die(canary).turn

    assert_match(/it stood still/, events("canary.failed").last[:reason])
  end

  def test_a_canary_that_moves_again
    on_trial
    cluster.hung << canary
    pass 31
    cluster.hung.clear
    pass 1

    assert_predicate generations.upcoming, :rolling?
  end

  def test_a_canary_that_stands_still_when_it_has_served_enough
    on_trial
    serve(canary, 20)
    cluster.hung << canary
    pass 20
    assert_predicate generations.upcoming, :canary?
  end

  def test_time_in_which_no_request_can_come_proves_nothing
    on_trial
    pass 20
    cluster.deaf = true
    pass 100
    assert_predicate generations.upcoming, :canary?
    cluster.deaf = false
    pass 8
    assert_predicate generations.upcoming, :canary?
    pass 3

    assert_predicate generations.upcoming, :rolling?
  end

  def test_nor_does_it_afterwards
    on_trial
    prove
    cluster.deaf = true
    pass 40
    assert_predicate generations, :watching?
    cluster.deaf = false
    pass 31

    refute_predicate generations, :watching?
  end

  def test_while_one_of_its_workers_stands_still_a_generation_does_not_pass_afterwards
    on_trial
    prove
    cluster.hung << cluster.worker_in(0)
    pass 40
    assert_predicate generations, :watching?
    cluster.hung.clear
    pass 1

    refute_predicate generations, :watching?
  end

  def test_a_canary_whose_requests_fail
    on_trial
    old = cluster.roster.ready_workers - [canary]
    source = generations.upcoming.source
    bad = canary
    fail_jobs(canary, 3)
    pass LOOK

    assert_match(/its canary did not prove itself: 3 of 3 requests failed/,
                 events("generation.discarded").last[:reason])
    assert_predicate source, :excluded_as_source?
    cluster.turn
    assert_predicate bad, :leaving?
    cluster.settle
    assert_equal old, cluster.roster.ready_workers, "nobody else was touched"
    assert_equal 0, generations.current.number
  end

  def test_a_canary_that_crashes
    on_trial
    serve(canary, 1)
    cluster.die(canary, ClusterSupport.ended(3)).turn

    assert_match(/status 3/, events("canary.failed").last[:reason])
    assert_nil generations.upcoming
  end

  def test_a_canary_that_is_killed_at_its_deadline
    on_trial
    canary.row.start_job("GET", "/", nil, nil)
    cluster.child_events.hard_timeout(bad = canary, 0)
    cluster.die(bad, ClusterSupport.killed).turn

    assert_match(/hard timeout/, events("canary.failed").last[:reason])
  end

  # It says nothing about the mold, unless it happens again and again.
  def test_a_canary_that_somebody_kills
    on_trial
    3.times do
      serve(canary, 1)
      cluster.die(canary).turn
      assert_predicate generations.upcoming, :canary?
      cluster.ready(cluster.starting.first).turn
    end
    assert_equal 1, events("canary.serving").size, "the trial goes on"
    serve(canary, 1)
    cluster.die(canary).turn

    assert_match(/4 of its first workers were lost/, events("canary.failed").last[:reason])
  end

  def test_what_its_predecessors_did_counts
    on_trial
    4.times do
      break unless generations.upcoming

      fail_jobs(canary, 1)
      canary.leave("timeout", now + 9)
      cluster.die(cluster.leaving.first, ClusterSupport.ended)
      pass LOOK
      cluster.starting.each { |child| cluster.ready(child) }
    end

    assert_match(/\d of \d requests failed/, events("canary.failed").last[:reason])
  end

  def test_a_canary_that_never_ends_its_request
    on_trial
    serve(canary, 30)
    canary.row.start_job("GET", "/loop", nil, nil)
    pass 40
    assert_predicate generations.upcoming, :canary?
    pass 21

    assert_match(%r{it has been at GET /loop for \d}, events("canary.failed").last[:reason])
  end

  def test_the_turn_is_taken_by_the_canary_and_the_others
    on_trial
    old = cluster.roster.ready_workers - [canary]
    links = [canary, *old].map(&:link)
    links.each { |link| link.orders.clear }
    4.times { pass LOOK }

    assert_equal([2, 2, 2], links.map { |link| link.orders.count(:step_back) })
  end

  def test_without_surge_it_takes_the_place_of_an_old_one
    on_trial(workers: 2, surge: 0, unavailable: 1)

    assert_equal(1, cluster.roster.ready_workers.count { |worker| worker.generation.zero? })
    fail_jobs(canary, 3)
    pass LOOK
    cluster.settle
    assert_equal [0, 0], cluster.generations_of_workers
  end

  def test_gaps_are_filled_when_the_old_mold_is_gone
    on_trial
    cluster.die(cluster.current_mold)
    serve(cluster.worker_in(1))
    cluster.die(cluster.worker_in(1)).turn

    assert_equal([1], cluster.starting.map(&:generation))
  end

  def test_afterwards_the_old_mold_is_kept_for_a_while
    on_trial
    old = cluster.current_mold
    prove

    assert_predicate old, :ready?
    told = events("generation.kept").map { |event| event.payload.slice(:generation, *TERMS.facts.keys) }
    assert_equal([{ generation: 0, **TERMS.facts }], told, "the user who waits sees for how long")
    assert_nil generations.tap { cluster.policy.threshold_value = 1 }.upcoming, "nor is there another refork meanwhile"
    2.times { |slot| serve(cluster.worker_in(slot), 20) }
    assert_equal 60, generations.progress[:requests]
    pass 11
    cluster.settle
    assert_predicate old, :gone?
  end

  def test_a_refork_that_somebody_asks_for_ends_that
    on_trial
    old = cluster.current_mold
    prove

    assert generations.refork("test")
    cluster.settle
    assert_predicate old, :gone?
  end

  def test_a_generation_that_is_bad_afterwards_is_taken_back
    on_trial
    prove
    fail_jobs(cluster.worker_in(0), 20)
    pass 1

    assert_match(/its workers do not prove themselves: \d+ of \d+ requests/,
                 events("generation.discarded").last[:reason])
    assert_equal [0, :current], [generations.current.number, generations.current.state]
    cluster.settle
    assert_equal [0, 0], cluster.generations_of_workers
    assert_equal 0, generations.reforks.count
    elapse 1
    assert generations.refork("test"), "and the next one is tried"
  end

  def test_workers_that_do_not_come_up_afterwards_are_a_reason_too
    on_trial
    prove
    cluster.die(cluster.worker_in(0))
    2.times do
      elapse 1
      cluster.turn
      cluster.die(cluster.starting.first, ClusterSupport.ended(1)) if cluster.starting.any?
    end

    assert_equal 0, generations.current.number
  end

  def test_the_new_mold_is_lost_meanwhile
    on_trial
    old = cluster.current_mold
    prove
    cluster.die(cluster.current_mold).turn

    assert_equal :heal, generations.upcoming.purpose
    cluster.settle
    assert_predicate old, :gone?
    assert_equal [1, 1], cluster.generations_of_workers
  end

  def test_the_kept_mold_is_lost_meanwhile
    on_trial
    old = cluster.current_mold
    prove
    cluster.die(old)
    fail_jobs(cluster.worker_in(0), 20)
    pass 1

    assert_equal 1, generations.current.number, "there is none to go back to"
  end

  # A reload that was watched brings its settings with the next turn: the old ones must not refork once more.
  def test_nothing_is_begun_in_the_turn_in_which_a_watch_ends
    on_trial
    prove
    cluster.settle
    cluster.policy.threshold_value = 0
    seconds = 0
    (pass 1) while generations.watching? && (seconds += 1) < 100
    refute_predicate generations, :watching?
    assert_nil generations.upcoming
    cluster.turn

    assert_predicate generations.upcoming, :booting?
  end

  def test_after_some_failures_reforking_is_suspended
    booted(canary: TERMS, refork_failures: 3)
    3.times { fail_once }
    elapse 100
    cluster.policy.threshold_value = 0
    cluster.turn

    assert_equal([3], events("refork.suspended").map { |event| event[:count] })
    assert_nil generations.upcoming
    refute generations.refork("test")
    assert_match(/suspended/, refused.last)
    assert generations.refork("test", force: true)
    assert_equal 1, events("refork.resumed").size
  end

  def test_one_that_succeeds_begins_the_count_anew
    booted(canary: TERMS, refork_failures: 3)
    2.times { fail_once }
    begin_trial
    prove
    pass 31
    2.times { fail_once }

    assert_empty events("refork.suspended")
  end
end
