# frozen_string_literal: true

require "test_helper"
require_relative "../support/mold_releaser_case"

# A mold that has much for itself goes.
class MoldReleaserTest < Minitest::Test
  include ClusterSupport::MoldReleaserCase

  def test_what_it_has_for_itself_comes_back
    released

    assert_empty cluster.roster.molds
    assert_nil generations.current.mold
    assert_nil generations.upcoming
  end

  def test_it_says_what_comes_back
    cluster
    pass

    assert_equal(["40.0 MiB of its memory are private to it"], events("mold.leaving").map { |event| event[:reason] })
    assert_empty events("mold.lost")
  end

  def test_not_before_all_is_calm
    cluster
    elapse(MoldReleaser::TICK)
    turn
    elapse(MoldReleaser::CALM - 1)
    turn
    refute released?

    cluster.die(cluster.worker_in(0))
    cluster.settle
    elapse(MoldReleaser::CALM - 1)
    turn
    refute released?
  end

  # It may keep its connections for hours.
  def test_a_draining_worker_is_not_waited_for
    drained = cluster.drain(cluster.worker_in(0))
    pass

    assert_predicate drained, :draining?
    assert released?
  end

  def test_a_little_is_not_worth_it
    @own = 9
    pass
    refute released?

    @own = 20
    pass
    assert released?
  end

  def test_asked_to_it_goes_for_a_little_as_well
    @own = 1
    cluster(mold: :release)
    pass

    assert released?
  end

  def test_kept
    cluster(mold: :keep)
    pass

    refute released?
    assert_nil releaser.due
  end

  # A request may have killed one of them, and be given to the other.
  def test_it_stays_beside_two_workers
    cluster(workers: 2, mold: :release)
    pass

    refute released?
  end

  def test_it_stays_where_nobody_may_fork_another
    cluster(mold: :release)
    cluster.policy.allowed = false
    pass

    refute released?
  end

  def test_it_stays_while_something_goes_on
    @conditions.obstacle = "a reload is under way"
    pass
    refute released?

    @conditions.obstacle = nil
    generations.refork("test")
    turn
    refute released?
  end

  # The next one from a worker may be as bad.
  def test_it_stays_when_a_worker_s_fork_has_come_to_nothing
    cluster(mold: :release)
    generations.refork("test")
    cluster.die(cluster.upcoming_mold)
    elapse(60)
    pass
    refute released?

    assert_released_after_a_refork
  end

  # How long their jobs take is not known before a node has forked a mold.
  def test_that_of_job_nodes_goes_when_a_node_has_forked_it_soon
    cluster(jobs: true)
    pass
    refute released?

    assert_released_after_a_refork
  end

  def test_it_stays_where_the_jobs_of_nodes_are_long
    cluster(jobs: true)
    generations.refork("test")
    elapse(Pando::Cluster::Generations::Promotion::PATIENCE)
    cluster.settle
    pass

    refute released?
  end

  # The first one that was asked had long jobs, and has died.
  def test_it_goes_if_the_node_that_forked_it_did_so_soon
    cluster(jobs: true)
    generations.refork("test")
    elapse(Pando::Cluster::Generations::Promotion::PATIENCE)
    cluster.die(generations.upcoming.source)
    cluster.settle
    assert_equal 1, events("source.changed").size
    pass

    assert released?
  end

  def test_how_long_that_took_is_known_after_an_upgrade
    cluster(jobs: true)
    generations.refork("test")
    elapse(3.0)
    cluster.settle

    record = state_of(generations.current).one("generation")

    assert_in_delta 3.0, Pando::Cluster::Generation.taken_up(record, cluster.roster).forked_within
  end
end
