# frozen_string_literal: true

require "test_helper"
require "pando/events/catalogue"
require_relative "../support/generations_case"

# A refork that is refused, again and again: it is told once, and each request for it is answered.
class ClusterRefusedReforkTest < Minitest::Test
  include ClusterSupport::GenerationsCase

  WHY = "A thread is alive (config.ru:3)"

  def test_a_worker_that_must_not_be_forked_is_one_warning
    booted(workers: 2)
    refused_by_policy(WHY)

    told = events("refork.refused").map(&:payload)
    assert_equal([[WHY, "a worker served 0 requests"]], told.map { |event| event.values_at(:reason, :wanted) })
    assert_includes(cluster.roster.ready_workers.map(&:slot), told.first[:slot])
    assert_equal(["refork.refused"], grave, "what follows from it is no other fault")
    assert_equal([WHY], events("generation.discarded").map { |event| event[:reason] })
    assert_equal([[1, WHY]], events("refork.failed").map { |event| event.payload.values_at(:generation, :reason) })
    assert_equal([1], told.map { |event| event[:generation] }, "it had begun")
  end

  def test_the_same_reason_is_told_once
    booted(workers: 4)
    refused_by_policy("#{WHY} (and 8 more)")
    refused_by_policy("#{WHY} (and 9 more)")
    refused_by_policy(WHY)

    assert_equal(["#{WHY} (and 8 more)"], refused)
    refused_by_policy("another one")
    assert_equal("another one", refused.last)
  end

  def test_each_request_for_a_refork_is_answered
    booted(workers: 4)
    refused_by_policy(WHY)
    elapse 100
    generations.refork("pando refork")
    refuse_promotion(WHY)

    assert_equal([WHY, WHY], refused)
    assert_equal("pando refork", events("refork.refused").last[:wanted])
  end

  # A dead mold is replaced without a user's wish.
  def test_a_user_who_has_asked_for_a_refork_is_not_told_of_each_attempt_to_heal_later
    booted(workers: 4)
    reforking
    cluster.settle
    cluster.die(generations.current.mold)
    2.times do
      elapse 100
      cluster.turn
      assert_equal(:heal, generations.upcoming.purpose)
      refuse_promotion(WHY)
    end

    assert_equal([WHY], refused)
  end

  # The user's request has its answer: another refork is under way.
  def test_a_request_while_the_policys_refork_is_under_way_does_not_make_that_the_users
    booted(workers: 4)
    cluster.policy.threshold_value = 0
    elapse 100
    cluster.turn
    refute(generations.refork("pando refork"))
    generations.reforks.called_off("it was at a long request", generations.upcoming.source)

    assert_equal([1], [events("refork.postponed").size])
  end

  def test_after_a_refork_that_worked_it_is_news_again
    booted(workers: 4)
    refused_by_policy(WHY)
    cluster.policy.threshold_value = nil
    elapse 100
    reforking
    cluster.settle
    cluster.policy.threshold_value = 0
    refused_by_policy(WHY)

    assert_equal([WHY, WHY], refused)
  end

  # It takes the place of a dead mold, which is no refork.
  def test_a_worker_that_does_not_become_the_next_mold_ends_no_refork
    booted(workers: 2)
    cluster.die(cluster.current_mold).turn
    assert_predicate generations.upcoming, :heal?
    refuse_promotion(WHY)

    assert_equal([[WHY, nil]], events("refork.refused").map { |event| event.payload.values_at(:reason, :generation) })
    assert_empty events("refork.failed")
  end

  # That one is no fault of the application's, and is told as it was, also to the user who asked.
  def test_a_fork_that_the_kernel_refuses_is_an_error
    booted(workers: 2)
    generations.refork("test")
    refuse(cluster.upcoming_mold)

    assert_equal(["no more processes"], refused)
    assert_equal([1, 1], %w[refork.refused refork.failed].map { |name| events(name).last[:generation] })
    assert_equal(1, events("fork.failed").size)
    assert_empty(events("generation.discarded"))
    assert_empty(events("mold.failed"), "it is told once")
    assert_equal(["fork.failed"], grave, "it is read once")
  end

  private

  # Events above the level of mere information.
  def grave
    @events.reject { |event| Pando::Events::Catalogue.level_of(event) == :info }.map(&:name)
  end

  def refused_by_policy(reason)
    cluster.policy.threshold_value = 0
    elapse 100
    cluster.turn
    refuse_promotion(reason)
  end

  def refuse_promotion(reason)
    cluster.child_events.fork_failed(cluster.upcoming_mold, reason, innocent: false)
  end
end
