# frozen_string_literal: true

require "test_helper"
require_relative "../support/mold_releaser_case"

# A mold that was let go comes back when it is wanted.
class RecalledMoldTest < Minitest::Test
  include ClusterSupport::MoldReleaserCase

  Promotion = Pando::Cluster::Generations::Promotion

  def test_a_dead_worker_is_replaced_from_a_mold_of_the_best_one
    released
    cluster.serve(cluster.worker_in(1), 5)
    best = cluster.worker_in(1)
    cluster.die(cluster.worker_in(0))
    turn

    assert_equal [:heal, best], [generations.upcoming.purpose, generations.upcoming.source]
    settle
    assert_equal [0, 1, 2], cluster.slots
    assert_equal 1, cluster.roster.molds.size
    assert_empty events("worker.leaving"), "nobody else is replaced"
  end

  def test_a_later_worker_is_no_better_a_source_than_earlier_ones
    released
    cluster.serve(cluster.worker_in(1), 5)
    best = cluster.worker_in(1)
    cluster.die(cluster.worker_in(0))
    settle
    generations.refork("test")

    assert_equal best, generations.upcoming.source
  end

  def test_one_that_was_missed_soon_stays_the_next_time
    released
    cluster.die(cluster.worker_in(0))
    settle
    pass(2 * MoldReleaser::WORTH)
    refute released?

    assert_released_after_a_refork
  end

  def test_one_that_was_missed_late_goes_again
    released
    elapse(MoldReleaser::WORTH)
    cluster.die(cluster.worker_in(0))
    settle
    pass

    assert released?
  end

  def test_more_workers_are_wanted
    released
    cluster.rollout.resize(5)
    settle

    assert_equal [0, 1, 2, 3, 4], cluster.slots
  end

  def test_a_worker_that_is_to_be_replaced_serves_until_then
    released
    old = cluster.worker_in(1)
    old.replacement_reason = "test"
    cluster.settle do
      turn
      assert cluster.worker_in(1)
    end

    refute_equal old, cluster.worker_in(1)
  end

  def test_a_service_is_started_again
    released(services: %i[clock])
    cluster.die(cluster.roster.services.first)
    elapse(10)
    settle

    assert_equal 1, cluster.roster.services.count(&:ready?)
  end

  def test_nobody_else_is_started_again_for_that
    released(services: %i[clock])
    clock = cluster.roster.services.first
    cluster.die(cluster.worker_in(0))
    settle

    assert_equal [1, [0, 1, 2]], [generations.current.number, cluster.slots]
    assert_equal [clock], cluster.roster.services
    generations.refork("test")
    cluster.settle
    assert_equal [2], cluster.roster.services.map(&:generation), "a refork replaces it"
  end

  # The mold that was kept for it before is no more.
  def test_a_service_that_dies_while_a_generation_is_watched
    watched(services: %i[clock])
    cluster.die(cluster.roster.services.first)
    elapse(10)
    cluster.services.reconcile
    clock = cluster.roster.services.first

    assert_predicate generations, :watching?
    assert_equal 1, clock.generation
    cluster.ready(clock)
    generations.roll_back("test")
    elapse(60)
    settle
    assert_equal [2], cluster.roster.services.map(&:generation)
  end

  def test_where_two_workers_are_left_a_mold_comes_back
    released
    cluster.rollout.resize(2)
    settle

    assert_equal [0, 1], cluster.slots
    assert_equal 1, cluster.roster.molds.size
    pass
    refute released?
  end

  def test_under_other_settings_it_comes_back
    released
    cluster.options.mold = :keep
    settle

    refute released?
  end

  def test_when_all_have_died_a_clean_image_is_booted
    released
    cluster.roster.ready_workers.each { |worker| cluster.die(worker) }

    assert_heals_from_cold
    assert_equal [0, 1, 2], cluster.slots
  end

  def test_a_source_that_fails_is_not_the_last_word
    released
    cluster.die(cluster.worker_in(0))
    turn
    first = generations.upcoming.source
    cluster.die(cluster.upcoming_mold)
    assert_nil generations.recall_mold, "the next attempt waits"

    elapse(60)
    turn
    refute_equal first, generations.upcoming.source
    settle
    assert_equal [0, 1, 2], cluster.slots
  end

  def test_an_idle_node_is_asked_although_a_busy_one_is_warmer
    without_a_mold_of_nodes
    cluster.serve(cluster.worker_in(1), 5)
    busy(1)
    cluster.die(cluster.worker_in(0))
    turn

    assert_equal [cluster.worker_in(2), Promotion::PATIENCE], [generations.upcoming.source, cluster.spawner.within]
  end

  # All others would take no jobs meanwhile, one after the other.
  def test_a_node_whose_jobs_do_not_end_soon_is_the_only_one_that_is_asked
    asked_in_vain

    assert_heals_from_cold
    assert_equal [0, 1, 2], cluster.slots
    pass(2 * MoldReleaser::WORTH)
    refute released?
  end

  def test_an_idle_node_is_asked_all_the_same
    asked_in_vain
    cluster.worker_in(2).row.finish_job
    turn

    assert_equal cluster.worker_in(2), generations.upcoming.source
  end

  def test_when_its_jobs_have_ended_it_may_be_asked_again
    asked = asked_in_vain
    asked.row.finish_job
    turn

    assert_equal asked, generations.upcoming.source
    refute_predicate asked, :excluded_as_source?
  end

  def test_quiet_nodes_are_replaced_when_one_has_forked_a_mold
    without_a_mold_of_nodes(exclusive: true)
    before = cluster.roster.ready_workers
    pools = [cluster]
    pools.define_singleton_method(:about) { |_pool, &change| change.call }
    quiet = Pando::Cluster::Quiet.new(pools)
    quiet.begin("test")
    quiet.reconcile(false)
    quiet.undo("test")
    turn
    assert_includes before, generations.upcoming.source
    assert_equal before, cluster.roster.ready_workers
    settle

    assert_equal [0, 1, 2], cluster.slots
    assert_empty before & cluster.roster.ready_workers
  end

  def test_nodes_that_are_all_at_long_jobs_are_not_asked
    without_a_mold_of_nodes
    [0, 1, 2].each { |slot| busy(slot) }
    elapse(Promotion::PATIENCE + 1)
    cluster.die(cluster.worker_in(0))

    assert_heals_from_cold
  end

  # Every slot is served, and a mold is wanted all the same.
  def test_the_app_does_not_boot_from_cold_where_no_process_is_needed
    without_a_mold_of_nodes
    [0, 1, 2].each { |slot| busy(slot) }
    elapse(Promotion::PATIENCE + 1)
    cluster.options.mold = :keep
    pass
    assert_nil generations.upcoming
    assert released?

    cluster.worker_in(1).row.finish_job
    pass
    refute released?
  end

  # The policy wants a refork all the time.
  def test_a_refork_of_nodes_that_waits_for_jobs_gives_way_to_a_process_that_is_needed
    without_a_mold_of_nodes
    cluster.serve(cluster.worker_in(1), 5)
    busy(1)
    generations.refork("test")
    cluster.policy.threshold_value = 1
    cluster.die(cluster.worker_in(0))
    elapse(Promotion::PATIENCE - 1)
    turn
    assert_equal :refork, generations.upcoming.purpose
    elapse(2)
    turn

    assert_equal [:heal, cluster.worker_in(2)], [generations.upcoming.purpose, generations.upcoming.source]
    cluster.policy.threshold_value = nil
    settle
    assert_equal [0, 1, 2], cluster.slots
    refute_predicate generations.reforks.failures, :positive?
  end

  def test_a_refork_whose_node_has_no_jobs_left_goes_on
    without_a_mold_of_nodes
    generations.refork("test")
    cluster.die(cluster.roster.ready_workers.find { |node| node != generations.upcoming.source })
    elapse(Promotion::PATIENCE + 1)
    turn

    assert_equal :refork, generations.upcoming.purpose
  end

  # A cold boot would bring into service what has been refused.
  def test_after_a_failed_reload_the_mold_stays
    cluster
    @reload_failed = true
    pass
    refute released?

    @reload_failed = false
    pass
    assert released?
    @reload_failed = true
    settle
    refute released?
  end

  def test_a_refork_takes_no_mold
    released
    generations.refork("test")
    cluster.settle

    assert_equal [1, 1, 1], cluster.generations_of_workers
    refute released?
  end

  def test_where_reforking_is_suspended_a_clean_image_is_booted
    released(refork_failures: 1)
    generations.refork("test")
    cluster.die(cluster.upcoming_mold)
    elapse(60)
    cluster.die(cluster.worker_in(0))

    assert_heals_from_cold
    assert_equal [0, 1, 2], cluster.slots
  end

  # There is none to go back to: the clean image is the last good one.
  def test_a_bad_generation_is_replaced_from_a_clean_image
    watched
    generations.roll_back("test")
    elapse(60)

    assert_heals_from_cold
    assert_equal [2, 2, 2], cluster.generations_of_workers
  end

  def test_a_reload_has_a_mold_to_fall_back_to
    released
    refute fallback_ready?
    settle(reloading: true)

    assert fallback_ready?
    assert_equal 1, cluster.roster.molds.size
  end

  def test_a_reload_does_not_wait_for_what_cannot_be_had
    released
    turn(reloading: true)
    cluster.die(cluster.upcoming_mold)

    assert fallback_ready?
  end

  # A clean image may be of the new release already.
  def test_a_reload_does_not_wait_for_a_clean_image_of_the_old_release
    released
    cluster.policy.allowed = false
    turn(reloading: true)

    assert_nil generations.upcoming
    assert fallback_ready?
  end

  def test_it_comes_through_an_upgrade
    released
    state = state_of(generations)
    other = Pando::Cluster::Generations.new(cluster.roster, cluster.spawner, cluster.policy, ->(*) {})
    other.from_state(state)

    assert_predicate other, :released?
    assert_equal :current, other.current.state
  end

  private

  # A node has forked it before.
  def without_a_mold_of_nodes(**options)
    cluster(jobs: true, **options)
    generations.refork("test")
    assert_nil cluster.spawner.within, "its jobs have all their time"
    cluster.settle
    pass
    assert released?
    cluster
  end

  def busy(slot) = cluster.worker_in(slot).row.start_job("jobs", "1 running", nil, nil)

  # @return [Child] a node that was asked to fork and has refused. It is still at its jobs, and another one at new ones
  def asked_in_vain
    asked = without_a_mold_of_nodes.worker_in(1)
    cluster.serve(asked, 5)
    [1, 2].each { |slot| busy(slot) }
    cluster.die(cluster.worker_in(0))
    turn
    assert_equal asked, generations.upcoming.source
    elapse(Promotion::PATIENCE)
    cluster.child_events.fork_failed(cluster.upcoming_mold, "its running work did not end", innocent: false)
    elapse(60)
    busy(2)
    asked
  end
end
