# frozen_string_literal: true

require "test_helper"
require "pando/events/catalogue"
require_relative "../support/generations_case"

# What becomes of the order to fork the next mold while the worker that has it is at a request.
class ClusterPromotionTest < Minitest::Test
  include ClusterSupport::GenerationsCase

  PATIENCE = Pando::Cluster::Generations::Promotion::PATIENCE

  def test_a_warm_worker_at_a_long_request_is_waited_for
    warm = ordered_with_warm_worker_busy

    assert_same warm, generations.upcoming.source
    assert_match(/one of 2\z/, events("refork.started").last[:choice])
    elapse(PATIENCE / 2)
    cluster.turn
    assert_same warm, generations.upcoming.source
    warm.row.finish_job
    elapse(PATIENCE)
    cluster.turn
    assert_same warm, generations.upcoming.source
    assert_empty events("source.changed")
  end

  def test_but_not_for_long_where_another_one_is_free
    ordered_with_warm_worker_busy
    order = generations.upcoming.mold
    elapse(PATIENCE)
    cluster.turn

    assert_equal [1, 1], [generations.upcoming.source.slot, generations.upcoming.mold.source.slot]
    assert_predicate order, :gone?
    assert_match(%r{\Athe worker in slot 0 was at GET /long for [78] s\z}, events("source.changed").last[:reason])
    cluster.settle
    assert_equal [1, 1], cluster.generations_of_workers
    assert_equal([1], events("refork.finished").map { |event| event[:generation] })
    assert_no_errors
  end

  def test_a_node_is_left_to_end_its_jobs
    warm = ordered_with_warm_worker_busy(jobs: true)
    elapse(PATIENCE * 2)
    cluster.turn

    assert_same warm, generations.upcoming.source
  end

  def test_who_is_left_out_is_told
    booted(workers: 3)
    3.times { |slot| cluster.serve(cluster.worker_in(slot), 5) }
    busy(cluster.worker_in(0))
    generations.refork("test")

    assert_equal "one of 2; left out: 1 at a long request", events("refork.started").last[:choice]
  end

  def test_another_one_is_asked_when_its_request_has_timed_out
    ordered_with_warm_worker_busy
    cluster.turn
    cluster.child_events.hard_timeout(generations.upcoming.source, 0)
    cluster.turn

    assert_equal 1, generations.upcoming.source.slot
    assert_equal "the worker in slot 0 was replaced after GET /long timed out", events("source.changed").last[:reason]
    assert_no_errors("request.killed")
  end

  def test_or_when_it_has_died
    ordered_with_warm_worker_busy
    cluster.die(generations.upcoming.source).turn

    assert_equal 1, generations.upcoming.source.slot
    assert_equal "the worker in slot 0 ended: signal KILL", events("source.changed").last[:reason]
    assert_no_errors("worker.lost")
  end

  def test_even_one_that_is_busy_itself
    ordered_with_warm_worker_busy
    busy(cluster.worker_in(1))
    cluster.die(generations.upcoming.source).turn

    assert_equal 1, generations.upcoming.source.slot
  end

  def test_or_is_to_leave
    ordered_with_warm_worker_busy
    cluster.rollout.ask_to_leave(generations.upcoming.source, "it has outgrown its memory")
    cluster.turn

    assert_equal 1, generations.upcoming.source.slot
    assert_equal "the worker in slot 0 is being replaced: it has outgrown its memory",
                 events("source.changed").last[:reason]
  end

  def test_where_there_is_no_other_one_the_reason_names_it
    ordered_with_warm_worker_busy(workers: 1)
    cluster.turn
    cluster.child_events.child_wants_replacement(generations.upcoming.source, "timeout")
    cluster.turn

    reason = "the worker that was to become the mold (slot 0) was replaced after GET /long timed out"
    assert_nil generations.upcoming
    assert_equal [[reason], [reason]], [refused, events("generation.refused").map { |event| event[:reason] }]
    assert_empty events("refork.postponed")
    assert_equal 0, generations.reforks.failures
    assert_no_errors
  end

  def test_a_policy_tries_again_later
    booted(workers: 1)
    cluster.policy.threshold_value = 5
    cluster.serve(cluster.worker_in(0), 5)
    cluster.turn
    cluster.die(generations.upcoming.source).turn

    assert_nil generations.upcoming
    assert_equal 1, events("refork.postponed").size
  end

  def test_one_that_is_at_its_request_to_the_end_of_all_time_is_no_failure
    ordered_with_warm_worker_busy(workers: 1)
    source = generations.upcoming.source
    elapse(28)
    cluster.child_events.spawn_overdue(generations.upcoming.mold)

    assert_match(%r{\Athe worker that was to become the mold \(slot 0\) was at GET /long for 30 s\z}, refused.last)
    assert_predicate source, :declined_while_busy?
    assert_no_errors
  end

  def test_its_request_may_end_while_another_one_is_chosen
    warm = ordered_with_warm_worker_busy
    warm.define_singleton_method(:engaged?) { |*| super().tap { row.finish_job } }
    elapse(PATIENCE)
    cluster.turn

    assert_equal "the worker in slot 0 was at a long request", events("source.changed").last[:reason]
  end

  def test_not_all_of_them_are_asked
    most = Pando::Cluster::Generations::Promotion::MOST
    booted(workers: most + 1)
    generations.refork("test")
    most.times { cluster.die(generations.upcoming.source) && generations.reconcile }

    assert_nil generations.upcoming
    assert_equal most - 1, events("source.changed").size
  end

  def test_a_mold_that_died_before_it_reported_is_a_failure
    ordered_with_warm_worker_busy
    mold = generations.upcoming.mold
    mold.source.row.finish_job
    mold.reason = "it ended before it reported"
    cluster.child_events.spawn_overdue(mold)

    assert_equal(["it ended before it reported"], events("mold.failed").map { |event| event[:reason] })
  end

  def test_in_place_of_a_lost_mold_another_worker_is_asked_or_none
    booted(workers: 2)
    cluster.die(cluster.current_mold).turn
    first = generations.upcoming.source
    generations.upcoming.source.kill("test")
    cluster.turn

    refute_same first, generations.upcoming.source
    generations.upcoming.source.kill("test")
    cluster.turn
    elapse(1)
    cluster.turn
    assert_equal [:heal, nil], [generations.upcoming.purpose, generations.upcoming.source]
  end

  private

  # @return [Child] that has been told to fork the next mold
  def ordered_with_warm_worker_busy(workers: 2, **options)
    booted(workers: workers, **options)
    warm = cluster.worker_in(0)
    cluster.serve(warm, 9)
    cluster.serve(cluster.worker_in(1), 3) if workers > 1
    busy(warm)
    assert generations.refork("test"), refused.inspect
    warm
  end

  def busy(worker)
    worker.row.start_job("GET", "/long", nil, nil)
    elapse(2)
  end

  def assert_no_errors(*but)
    errors = event_names.select { |name| Pando::Events::Catalogue.level(name) == :error }

    assert_empty errors - but
  end
end
