# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "support/simulation"

# What becomes of children that got TERM from outside.
class ExternalSignalsTest < Minitest::Test
  include ClusterSupport::Clock
  include ClusterSupport::Listening

  def setup
    super
    @cluster = ClusterSupport::Simulation.new(workers: 2, services: [:clock])
    @cluster.boot
    @external_signals = Pando::Cluster::ExternalSignals.new(@cluster.rollout, @cluster.generations,
                                                            ClusterSupport.options)
  end

  def worker = @cluster.worker_in(0)
  def mold = @cluster.current_mold
  def past = elapse(Pando::Cluster::ExternalSignals::SPREAD + 0.001)

  def test_who_got_it_alone_is_replaced_a_moment_later
    told = worker
    @external_signals.add(told, "TERM")
    @external_signals.reconcile
    assert_predicate told, :ready?
    past
    @external_signals.reconcile

    assert_predicate told, :leaving?
    assert_equal [:leave], told.link.orders
    assert_equal(["TERM"], events("worker.leaving").map { |event| event[:reason] })
    assert_nil @external_signals.due
  end

  def test_it_is_due_then
    assert_nil @external_signals.due
    @external_signals.add(worker, "TERM")
    elapse(0.5)
    @external_signals.add(worker, "TERM")

    assert_in_delta Pando::Cluster::ExternalSignals::SPREAD - 0.5, @external_signals.due - now, 0.2
  end

  def test_a_mold
    @external_signals.add(mold, "QUIT")
    past
    @external_signals.reconcile

    assert_equal [:leave], mold.link.orders
    assert_equal "QUIT", mold.reason
  end

  def test_who_has_gone_meanwhile_is_left_alone
    @external_signals.add(worker, "TERM")
    victim = worker
    @cluster.die(victim)
    past
    @external_signals.reconcile

    assert_empty victim.link.orders
  end

  def test_services_are_not_its_business
    @external_signals.add(@cluster.roster.services.first, "TERM")

    assert_nil @external_signals.due
  end
end
