# frozen_string_literal: true

require "test_helper"
require "pando/cluster/dismissals"
require_relative "support/simulation"

# What becomes of those who got TERM from outside.
class DismissalsTest < Minitest::Test
  include ClusterSupport::Clock
  include ClusterSupport::Listening

  def setup
    super
    @cluster = ClusterSupport::Simulation.new(workers: 2, services: [:clock])
    @cluster.boot
    @dismissals = Pando::Cluster::Dismissals.new(@cluster.rollout, @cluster.generations, ClusterSupport.options)
  end

  def worker = @cluster.worker_in(0)
  def mold = @cluster.current_mold
  def past = elapse(Pando::Cluster::Dismissals::SPREAD + 0.001)

  def test_who_got_it_alone_is_replaced_a_moment_later
    told = worker
    @dismissals.add(told, "TERM")
    @dismissals.reconcile
    assert_predicate told, :ready?
    past
    @dismissals.reconcile

    assert_predicate told, :leaving?
    assert_equal [:leave], told.link.orders
    assert_equal(["TERM"], events("worker.leaving").map { |event| event[:reason] })
    assert_nil @dismissals.due
  end

  def test_it_is_due_then
    assert_nil @dismissals.due
    @dismissals.add(worker, "TERM")
    elapse(0.5)
    @dismissals.add(worker, "TERM")

    assert_in_delta Pando::Cluster::Dismissals::SPREAD - 0.5, @dismissals.due - now, 0.2
  end

  def test_a_mold
    @dismissals.add(mold, "QUIT")
    past
    @dismissals.reconcile

    assert_equal [:leave], mold.link.orders
    assert_equal "QUIT", mold.reason
  end

  def test_who_has_gone_meanwhile_is_left_alone
    @dismissals.add(worker, "TERM")
    victim = worker
    @cluster.die(victim)
    past
    @dismissals.reconcile

    assert_empty victim.link.orders
  end

  def test_services_are_not_its_business
    @dismissals.add(@cluster.roster.services.first, "TERM")

    assert_nil @dismissals.due
  end
end
