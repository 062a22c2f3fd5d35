# frozen_string_literal: true

require "test_helper"
require_relative "support/evaluation_case"

# A generation on trial while no client asks for anything, or one that need not be tried.
class ClusterQuietTrialTest < Minitest::Test
  include ClusterProofSupport::EvaluationCase

  def test_on_a_quiet_server_the_canary_tries_itself_out_and_is_not_waited_for
    on_trial
    pass 0.7
    refute_includes canary.link.orders, :try_out
    pass 0.3
    assert_equal 1, canary.link.orders.count(:try_out)
    tried("GET / 200")
    pass 0.5
    assert_predicate generations.upcoming, :canary?
    pass 0.5

    assert_predicate generations.upcoming, :rolling?
    assert_empty events("canary.passed"), "it has proved nothing"
    told = events("canary.unproven").last
    assert_equal ["no request came, and none for 2.0 s", "GET / 200", 0],
                 told.payload.values_at(:reason, :replayed, :requests)
    assert_operator told[:seconds], :<, 2.5
  end

  # As a rule its mold takes seconds to boot; a canary is looked at for one all the same.
  def test_that_nobody_came_while_the_mold_was_booting_counts
    booted(workers: 2, canary: TERMS)
    elapse 31
    generations.refork("test")
    elapse 5
    cluster.ready(cluster.upcoming_mold).turn
    cluster.ready(cluster.starting.first).turn
    pass 0.2
    assert_equal 1, canary.link.orders.count(:try_out)
    tried
    pass 0.5
    assert_predicate generations.upcoming, :canary?
    pass 0.5

    assert_predicate generations.upcoming, :rolling?
    assert_operator events("canary.unproven").last[:seconds], :<, 1.5
  end

  def test_if_requests_came_meanwhile_it_does_not
    booted(workers: 2, canary: TERMS)
    elapse 31
    generations.refork("test")
    elapse 5
    serve(cluster.worker_in(1))
    cluster.ready(cluster.upcoming_mold).turn
    cluster.ready(cluster.starting.first).turn
    pass 0.7

    refute_includes canary.link.orders, :try_out
  end

  def test_a_canary_that_fails_when_it_tries_itself_out
    on_trial
    pass 1.2
    cluster.child_events.canary_tried(canary, "the replay of GET / was answered with 500", failed: true)

    assert_match(%r{GET / was answered with 500}, events("canary.failed").last[:reason])
    assert_nil generations.upcoming
    cluster.settle
    assert_equal [0, 0], cluster.generations_of_workers
  end

  def test_a_canary_that_does_not_say_how_that_went
    on_trial
    pass 29
    assert_predicate generations.upcoming, :canary?
    pass 2

    assert_equal "no request came within 30 s", events("canary.unproven").last[:reason]
  end

  def test_the_next_canary_tries_itself_out_anew
    on_trial
    pass 1.2
    cluster.die(canary).turn
    cluster.ready(cluster.starting.first).turn
    pass 2.5

    assert_equal 1, canary.link.orders.count(:try_out)
    assert_predicate generations.upcoming, :canary?, "what the one before it said does not count"
  end

  # A request anywhere is a sign that more may come.
  def test_a_server_with_a_request_a_second_is_not_quiet
    on_trial
    old = (cluster.roster.ready_workers - [canary]).first
    39.times do
      pass 0.7
      serve(old)
    end
    assert_predicate generations.upcoming, :canary?
    refute_includes canary.link.orders, :try_out
    pass 2

    assert_equal "no request came within 30 s", events("canary.unproven").last[:reason]
  end

  def test_a_trickle_of_requests_is_judged_in_its_first_pause
    on_trial
    serve(canary, 3)
    pass 1.5
    tried
    pass 1

    assert_equal "only 3 of 20 requests came, and none for 2.0 s", events("canary.unproven").last[:reason]
  end

  # One that fails all of the few that come is not let through because it is quiet.
  def test_in_a_pause_doubts_are_not_passed_over
    on_trial
    fail_jobs(canary, 1)
    pass 1.5
    tried
    pass 20
    assert_predicate generations.upcoming, :canary?
    pass 10

    assert_match(/1 of 1 request failed/, events("canary.failed").last[:reason])
  end

  # It may have been sent there just now.
  def test_while_the_canary_is_at_a_request_the_server_is_not_quiet
    on_trial
    pass 0.5
    canary.row.start_job("GET", "/", nil, nil)
    pass 1.2
    tried
    pass 10

    assert_predicate generations.upcoming, :canary?
  end

  def test_after_a_quiet_rollout_all_are_watched_and_taken_back_if_they_fail
    on_trial
    pass 1.2
    tried
    pass 1
    cluster.settle
    assert_predicate generations, :watching?
    assert_equal "no request came, and none for 2.0 s", generations.current.unproven
    fail_jobs(cluster.worker_in(0), 20)
    pass 1

    assert_equal 0, generations.current.number
  end

  # Nobody has asked the old release for anything either.
  def test_a_generation_of_which_all_requests_fail_is_taken_back_without_anything_to_compare_with
    booted(workers: 2, canary: TERMS)
    begin_trial
    pass 1.2
    tried
    pass 1
    cluster.settle
    fail_jobs(cluster.worker_in(0), 4)
    pass 1
    assert_predicate generations, :watching?
    fail_jobs(cluster.worker_in(1), 1)
    pass 1

    assert_equal 0, generations.current.number
    assert_match(/5 of 5 requests failed/, events("generation.discarded").last[:reason])
  end

  def test_without_a_trial
    booted(workers: 2, canary: TERMS)
    elapse 31
    generations.refork("test")
    generations.upcoming.untried = "pando reload --now"
    cluster.ready(cluster.upcoming_mold).turn
    cluster.ready(cluster.starting.first).turn

    assert_predicate generations.upcoming, :rolling?
    assert_equal(["pando reload --now"], events("canary.skipped").map { |event| event[:reason] })
    cluster.settle
    assert_predicate generations, :watching?
    assert_equal 30, generations.occupation.last.round
    generations.end_watch("another reload was asked for")
    refute_predicate generations, :watching?
    assert_nil generations.occupation
  end

  def test_what_whoever_must_wait_is_told
    booted(workers: 2, canary: TERMS)
    elapse 31
    generations.refork("test")
    assert_occupied "generation 1 (refork) is booting", 20
    cluster.ready(cluster.upcoming_mold).turn
    cluster.ready(cluster.starting.first).turn
    pass 0.5

    assert_occupied "generation 1 (refork) is on trial", 60
  end

  private

  def assert_occupied(words, seconds)
    reason, left = generations.occupation
    assert_equal [words, seconds], [reason, left.ceil]
  end

  def tried(text = "") = cluster.child_events.canary_tried(canary, text)
end
