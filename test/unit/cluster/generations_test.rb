# frozen_string_literal: true

require "test_helper"
require "support/upgrade_record"
require_relative "support/generations_case"

class ClusterGenerationsTest < Minitest::Test
  include ClusterSupport::GenerationsCase

  def test_a_boot
    booted

    assert_equal [0, :boot], [generations.current.number, generations.current.purpose]
    assert_equal %w[booting ready canary rolling current].map { |state| "generation.#{state}" },
                 event_names.grep(/^generation/)
    assert_equal 0, generations.reforks.count
  end

  def test_a_refork_from_the_worker_that_served_most
    booted(workers: 3)
    cluster.serve(cluster.worker_in(1), 5)
    source = cluster.worker_in(1)
    reforking

    assert_same source, generations.upcoming.source
    assert_same source, cluster.upcoming_mold.source
    cluster.settle
    assert_equal [1, :refork, 1], [generations.current.number, generations.current.purpose, generations.reforks.count]
    assert_equal 1, events("refork.finished").size
  end

  def test_nobody_waits_for_a_worker_at_a_long_job
    booted(workers: 3)
    cluster.serve(cluster.worker_in(1), 5)
    cluster.serve(cluster.worker_in(2), 3)
    cluster.worker_in(1).row.start_job("GET", "/stream", nil, nil)
    elapse 2
    source = cluster.worker_in(2)
    reforking

    assert_same source, generations.upcoming.source
  end

  def test_unless_all_are_at_one
    booted(workers: 2)
    cluster.serve(cluster.worker_in(1), 5)
    2.times { |slot| cluster.worker_in(slot).row.start_job("GET", "/stream", nil, nil) }
    elapse 2
    source = cluster.worker_in(1)
    reforking

    assert_same source, generations.upcoming.source
  end

  def test_the_old_mold_is_kept_until_the_new_generation_serves
    booted
    old = cluster.current_mold
    reforking

    assert_predicate old, :ready?
    cluster.settle { assert_predicate(old, :ready?) if generations.upcoming }
    assert_predicate old, :gone?
    assert_includes event_names, "mold.retired"
  end

  # It has nobody to share memory with, and its jobs would wait.
  def test_a_measuring_policy_leaves_a_single_node_alone
    booted(jobs: true)
    looks = 0
    cluster.policy.define_singleton_method(:measures?) { true }
    cluster.policy.define_singleton_method(:decide) { |*| (looks += 1) && throw(:asked) }
    look = lambda do
      elapse(10)
      catch(:asked) { generations.reconcile }
    end
    look.call
    asked = looks
    cluster.rollout.resize(1)
    cluster.settle { nil }
    look.call

    assert_operator asked, :>, 0
    assert_equal asked, looks
    assert_match(/one node only/, generations.reforks.explain[:waits])
  end

  # Each mold comes from a worker, and that one from a mold.
  def test_the_dead_are_forgotten
    generations.begin_boot
    cluster.ready(cluster.upcoming_mold).settle
    first = cluster.roster.ready_workers.first
    2.times do
      generations.refork("test")
      cluster.ready(cluster.upcoming_mold).settle
    end

    assert_predicate first, :gone?
    assert_nil first.source
  end

  def test_what_stands_against_a_refork
    generations.begin_boot
    refute generations.refork("test")
    cluster.ready(cluster.upcoming_mold).settle
    cluster.policy.allowed = false
    refute generations.refork("test")
    cluster.policy.allowed = true
    cluster.worker_in(0).leave("replaced", now + 9)
    refute generations.refork("test")
    cluster.settle
    cluster.roster.ready_workers.each { |worker| worker.row.fork_unsafe! }
    refute generations.refork("test")

    assert_equal ["generation 0 (boot) is booting, and that ends within 20 s; begun 0 s ago. Wait for its end, and " \
                  "ask again: `pando status` shows how far it is",
                  "reforking is switched off", "a worker is starting or leaving",
                  "no worker is fit to become a mold: the app has made each of them unsafe to fork. `worker.unsafe` " \
                  "in the log says why, and `pando doctor` finds more"], refused
  end

  def test_the_policy_says_when
    booted
    cluster.policy.threshold_value = 10
    cluster.serve(cluster.worker_in(0), 9)
    cluster.turn
    assert_nil generations.upcoming
    cluster.serve(cluster.worker_in(0), 1)
    cluster.turn

    assert_equal "a worker served 10 requests", events("refork.started").last[:reason]
  end

  def test_a_canary_that_fails_rolls_back
    booted(workers: 3)
    cluster.serve(cluster.worker_in(0))
    source = cluster.worker_in(0)
    reforking
    mold = cluster.upcoming_mold
    canary = cluster.starting.first
    cluster.adopt(canary)
    canary.add_detail("its backtrace")
    canary.failure = "hook raised"
    cluster.die(canary, ClusterSupport.ended(1)).turn

    assert_equal [0, nil], [generations.current.number, generations.upcoming]
    assert_equal [0] * 3, cluster.generations_of_workers
    assert_equal [:leave], mold.link.orders
    assert_predicate source, :excluded_as_source?
    failed, discarded = %w[worker.failed generation.discarded].map { |name| events(name).last.payload }
    assert_equal([[1, "hook raised: status 1", "its backtrace"], [1, "hook raised: status 1", nil]],
                 [failed, discarded].map { |event| event.values_at(:generation, :reason, :backtrace) })
    assert_equal([[1, "hook raised: status 1"]],
                 events("refork.failed").map { |event| event.payload.values_at(:generation, :reason) })
    refute generations.refork("too soon")
    assert_match(/the next one waits for another 0\.\d s: `pando refork --force` does not\z/, refused.last)
    refute(events("refork.refused").last.payload.key?(:generation), "it has not begun")
    assert_equal 1, refused.size
    elapse(1)
    reforking
    cluster.settle
    assert_equal [2] * 3, cluster.generations_of_workers
  end

  def test_a_failure_in_the_middle_of_a_rollout_takes_the_new_workers_back
    booted(workers: 4)
    reforking
    cluster.ready(cluster.starting.first).turn
    cluster.die(cluster.starting.first, ClusterSupport.ended(1))
    elapse(1)
    cluster.settle

    assert_equal [0] * 4, cluster.generations_of_workers
    assert_equal 0, generations.current.number
  end

  def test_who_is_still_starting_when_its_generation_is_discarded_is_asked_to_leave
    booted(workers: 4, surge: 3)
    reforking
    cluster.ready(cluster.starting.first).turn
    first, second, third = cluster.starting
    [first, second].each { |child| cluster.adopt(child) }
    cluster.die(first, ClusterSupport.ended(1))
    assert_equal [:leave], second.link.orders, "it may be ready, and serve, without our knowledge"
    cluster.adopt(third)

    assert_equal [:leave], third.link.orders.uniq
    assert_empty([second, third].flat_map { |child| child.pidfd.signals })
  end

  def test_a_mold_that_dies_while_it_boots
    booted
    generations.refork("test")
    cluster.adopt(mold = cluster.upcoming_mold)
    cluster.die(mold).turn

    assert_nil generations.upcoming
    assert_equal 1, events("mold.failed").size
    assert_equal [0, 0], cluster.generations_of_workers
  end

  def test_a_mold_that_dies_during_the_rollout
    booted(workers: 3)
    reforking
    cluster.ready(cluster.starting.first)
    cluster.die(cluster.upcoming_mold)
    elapse(1)
    cluster.settle

    assert_equal [0] * 3, cluster.generations_of_workers
    assert_equal ["generation.discarded"], event_names.grep(/discarded/) - ["mold.discarded"]
  end

  def test_without_any_worker_it_may_be_asked_for_later
    booted
    cluster.roster.ready_workers.each { |worker| cluster.dismiss(worker) }

    refute generations.refork("test")
    assert_match(/is fit to become a mold now/, refused.last)
  end

  # None serves again in its place.
  def test_one_that_is_lost_while_it_is_not_watched_leaves_the_count
    booted
    reforking
    cluster.settle
    generations.reforks.take_up(Support::UpgradeRecord.of(generations.reforks))
    generations.reforks.failed(generations.current, "test")

    assert_equal 1, generations.reforks.count
  end

  def test_a_mold_that_comes_too_late_is_ended
    booted
    generations.refork("test")
    mold = cluster.upcoming_mold
    cluster.child_events.spawn_overdue(mold)
    late = cluster.roster.admit(:mold, 0, 1, ClusterSupport::FakeLink.new, nil)
    cluster.ready(late)

    assert_includes late.pidfd.signals, "KILL"
    assert_equal 0, generations.current.number
  end

  def test_the_death_of_the_mold_promotes_the_best_worker_and_replaces_nobody
    booted(workers: 3)
    cluster.serve(cluster.worker_in(2), 3)
    workers = cluster.roster.ready_workers
    cluster.die(cluster.current_mold).turn

    assert_equal [:heal, 2], [generations.upcoming.purpose, generations.upcoming.source.slot]
    cluster.ready(cluster.upcoming_mold).settle
    assert_equal workers, cluster.roster.ready_workers
    assert_equal [1, 0], [generations.current.number, generations.reforks.count]
  end

  def test_without_a_worker_that_is_fit_the_death_of_the_mold_is_a_cold_boot
    booted
    cluster.roster.ready_workers.each { |worker| worker.row.fork_unsafe! }
    cluster.die(cluster.current_mold).turn

    assert_nil generations.upcoming.source
    assert_nil cluster.upcoming_mold.source
    cluster.ready(cluster.upcoming_mold).settle
    assert_equal 1, generations.current.number
  end

  def test_who_failed_as_a_source_does_not_keep_a_cluster_from_its_mold
    booted(workers: 1)
    cluster.die(cluster.current_mold).turn
    assert_equal cluster.worker_in(0), generations.upcoming.source
    cluster.die(cluster.upcoming_mold)
    elapse(1)
    cluster.turn

    assert_nil generations.upcoming.source, "a cold boot comes next"
  end

  def test_who_failed_as_a_source_is_asked_again_when_all_have_failed
    booted(workers: 2)
    sources = Array.new(4) do |round|
      cluster.serve(cluster.worker_in(round % 2), 10 * (round + 1))
      assert generations.refork("test")
      source = generations.upcoming.source
      cluster.adopt(cluster.upcoming_mold)
      cluster.die(cluster.upcoming_mold)
      elapse(61)
      source
    end

    assert_equal 2, sources.uniq.size
    assert_equal 2, sources.first(2).uniq.size, "the other one comes first"
  end

  def test_reforks_are_counted_from_the_cold_mold_on
    booted(workers: 1)
    2.times { reforking && cluster.settle }
    assert_equal 2, generations.reforks.count
    cluster.worker_in(0).row.fork_unsafe!
    cluster.die(cluster.current_mold)
    cluster.settle

    assert_equal [:heal, 0], [generations.current.purpose, generations.reforks.count]
  end

  def test_no_list_grows_for_ever
    booted(workers: 1)
    150.times do
      elapse(61)
      generations.refork("test")
      cluster.die(cluster.upcoming_mold)
    end

    assert_equal 2, cluster.roster.size
  end

  # Other pools may still try that release, and the pool's own command is that of the one before.
  def test_a_mold_that_is_lost_before_its_release_is_adopted_boots_that_release_again
    booted(workers: 1)
    generations.reload(["new"], [])
    cluster.ready(cluster.upcoming_mold).settle
    heal_from_cold
    generations.adopt_release
    heal_from_cold

    assert_equal [[], [["new"], []], [["new"], []], []], cluster.spawner.releases
  end

  def test_after_a_failed_reload_a_lost_mold_boots_the_release_before_again
    heals_with_the_release_before { cluster.die(cluster.upcoming_mold) }
  end

  def test_so_it_does_after_one_for_which_there_was_no_process
    heals_with_the_release_before { generations.mold_refused }
  end

  def heals_with_the_release_before
    booted(workers: 1)
    generations.reload(["new"], [])
    yield
    heal_from_cold

    assert_equal [[], [["new"], []], []], cluster.spawner.releases
  end

  def heal_from_cold
    elapse(61)
    cluster.worker_in(0).row.fork_unsafe!
    cluster.die(cluster.current_mold)
    cluster.settle
    assert_equal :heal, generations.current.purpose
  end

  # See Pool#cold_mold_for.
  def test_a_mold_of_another_pool_may_be_forked_in_the_place_of_a_cold_boot
    origin = cluster(workers: 1).roster.of(1).admit(:mold, 0, 0, ClusterSupport::FakeLink.new, nil).tap(&:become_ready)
    generations.instance_variable_set(:@origin, ->(purpose) { origin if purpose == :boot })
    cluster.spawner.define_singleton_method(:mold_beside) { |source, number| order(:mold, 0, number, source) }
    cluster.boot

    assert_same(origin, cluster.current_mold.source)
    assert_nil(generations.current.source, "as if it had booted from cold")
    cluster.die(cluster.current_mold).die(cluster.worker_in(0)).turn
    assert_nil(cluster.upcoming_mold.source)
  end
end
