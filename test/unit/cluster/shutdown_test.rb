# frozen_string_literal: true

require "test_helper"
require_relative "support/simulation"

class ClusterShutdownTest < Minitest::Test
  include ClusterSupport::Clock
  include ClusterSupport::Listening

  def setup
    super
    @cluster = ClusterSupport::Simulation.new(workers: 2, services: [:clock])
    @cluster.boot
  end

  def shutdown = @cluster.shutdown
  def all = @cluster.roster.to_a
  def service = @cluster.roster.services.first

  def test_nothing_has_begun
    refute_predicate shutdown, :begun?
    refute_predicate shutdown, :complete?
    assert_equal 0, shutdown.status
  end

  def test_gracefully
    shutdown.gracefully("TERM")

    assert_predicate shutdown, :begun?
    assert_equal([[:drain]] * 4, all.map { |child| child.link.orders })
    assert_equal ["TERM"], service.pidfd.signals
    assert_empty((all - [service]).flat_map { |child| child.pidfd.signals })
    all.each { |child| assert_in_delta now + 10, child.deadline, 1 }
    assert_equal "TERM", events("monitor.stopping").last[:reason]
  end

  def test_quickly
    shutdown.quickly("INT")

    assert_equal([[:leave]] * 4, all.map { |child| child.link.orders })
    all.each { |child| assert_in_delta now + 1, child.deadline, 0.5 }
  end

  def test_a_stop_waits_for_nobody_patiently
    worker = @cluster.worker_in(0)
    worker.leave("replaced", now + 1000, patient: true)
    shutdown.gracefully("TERM")

    assert_in_delta now + 10, worker.deadline, 1
    refute_predicate worker, :patient?
  end

  def test_at_once
    shutdown.gracefully("TERM")
    shutdown.at_once("TERM")

    assert_equal(["KILL"] * 4, all.map { |child| child.pidfd.signals.last })
  end

  def test_it_is_complete_when_the_last_one_is_buried
    shutdown.gracefully("TERM")
    all.each do |child|
      refute_predicate shutdown, :complete?
      @cluster.die(child, ClusterSupport.ended)
    end

    assert_predicate shutdown, :complete?
    assert_equal 0, shutdown.status
  end

  def test_deaths_order_nobody_new
    shutdown.gracefully("TERM")
    before = @cluster.roster.size
    @cluster.die(@cluster.current_mold)
    @cluster.die(@cluster.leaving.first)

    assert_equal before - 2, @cluster.roster.size
    assert_nil @cluster.given_up
    assert_nil @cluster.generations.upcoming
  end

  def test_who_is_not_ready_is_ended_and_who_is_not_born_forgotten
    @cluster.rollout.resize(4)
    @cluster.turn
    adopted, unborn = @cluster.starting
    @cluster.adopt(adopted)
    shutdown.gracefully("TERM")

    assert_equal [[:leave], []], [adopted.link.orders, adopted.pidfd.signals], "it may serve already"
    assert_predicate unborn, :gone?
    assert_predicate unborn.link, :closed?
  end

  def test_late_comers_are_ended
    late = @cluster.roster.admit(:worker, 7, 0, ClusterSupport::FakeLink.new, nil)
    booting = @cluster.roster.admit(:mold, 0, 9, ClusterSupport::FakeLink.new, nil)
    booting.adopt(ClusterSupport::FakePidfd.new(5))
    shutdown.instance_variable_set(:@begun, true)
    shutdown.instance_variable_set(:@deadline, Pando::Sys.now + 10)
    @cluster.adopt(late)
    shutdown.end_late_comer(booting)

    assert_equal [[:leave], []], [late.link.orders, late.pidfd.signals], "it may serve already"
    assert_equal ["KILL"], booting.pidfd.signals
  end

  def test_a_failure_is_told_last
    shutdown.fail("the reason", "the app's backtrace")

    assert_equal 1, shutdown.status
    assert_output(nil, /\Apando could not start.*the app's backtrace\n\z/) { shutdown.tell_failure }
  end

  def test_a_failure_without_a_backtrace
    shutdown.fail("the reason", nil)

    assert_output(nil, /the reason/) { shutdown.tell_failure }
  end

  def test_without_a_failure_nothing_is_told
    shutdown.gracefully("TERM")

    assert_silent { shutdown.tell_failure }
  end
end
