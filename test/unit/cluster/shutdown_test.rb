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

  def test_each_pool_has_a_patience_of_its_own_and_only_that_of_the_reactor_waits_for_it
    @cluster.add_reactor
    node = @cluster.roster.of(1).admit(:worker, 0, 0, ClusterSupport::FakeLink.new, nil).tap(&:become_ready)
    patient = ClusterSupport.options(stop_timeout: 40.0, jobs: true)
    options_of = ->(child) { child.pool.zero? ? @cluster.options : patient }
    shutdown = Pando::Cluster::Shutdown.new(@cluster.roster, @cluster.options, ->(_) {}, options_of: options_of)
    shutdown.gracefully("TERM")

    assert_equal [:drain], node.link.orders
    assert_in_delta now + 40, node.deadline, 1
    assert_in_delta now + 10, @cluster.current_mold.deadline, 1
    assert_in_delta now + 40, shutdown.deadline, 1
    assert_empty @cluster.worker_in(0).link.orders
  end

  def test_the_workers_of_each_pool_wait_for_the_reactor
    @cluster.add_reactor
    worker = @cluster.roster.of(1).admit(:worker, 0, 0, ClusterSupport::FakeLink.new, nil).tap(&:become_ready)
    shutdown.gracefully("TERM")

    assert_empty worker.link.orders
  end

  def test_quickly
    shutdown.quickly("INT")

    assert_equal([[:leave]] * 4, all.map { |child| child.link.orders })
    all.each { |child| assert_in_delta now + 1, child.deadline, 0.5 }
  end

  def test_a_second_graceful_stop_changes_nothing
    shutdown.gracefully("TERM")
    elapse(9)
    shutdown.gracefully("pando stop")

    assert_in_delta now + 1, shutdown.deadline, 0.5
    all.each { |child| assert_in_delta now + 1, child.deadline, 0.5 }
    assert_equal([[:drain]] * 4, all.map { |child| child.link.orders })
    assert_equal(["TERM"], events("monitor.stopping").map { |event| event[:reason] })
  end

  def test_a_second_quick_stop_changes_nothing_and_a_graceful_one_after_it
    shutdown.quickly("INT")
    elapse(0.75)
    shutdown.quickly("pando stop")
    shutdown.gracefully("pando stop")

    assert_in_delta now + 0.25, shutdown.deadline, 0.5
    assert_equal([[:leave]] * 4, all.map { |child| child.link.orders })
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

  def test_a_quick_stop_after_one_at_once_changes_nothing
    shutdown.gracefully("TERM")
    shutdown.at_once("TERM")
    shutdown.quickly("pando stop")

    assert_in_delta now, shutdown.deadline, 0.5
    assert_equal([[:drain]] * 4, all.map { |child| child.link.orders })
    assert_equal(%w[TERM TERM], events("monitor.stopping").map { |event| event[:reason] })
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

  def test_an_unready_child_is_ended_and_an_unborn_one_forgotten
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
    shutdown.end_starting_child(booting)

    assert_equal [[:leave], []], [late.link.orders, late.pidfd.signals], "it may serve already"
    assert_equal ["KILL"], booting.pidfd.signals
  end

  def test_a_failure_is_told_last
    shutdown.fail("the reason", "the app's backtrace")

    assert_equal 1, shutdown.status
    assert_output(nil, /\Apando could not start.*the app's backtrace\n\z/) { shutdown.print_failure }
  end

  def test_a_failure_without_a_backtrace
    shutdown.fail("the reason", nil)

    assert_output(nil, /the reason/) { shutdown.print_failure }
  end

  def test_without_a_failure_nothing_is_told
    shutdown.gracefully("TERM")

    assert_silent { shutdown.print_failure }
  end

  # --- with a reactor, in two phases

  def workers = @cluster.roster.workers
  def orders_of(children) = children.map { |child| child.link.orders }

  def test_the_workers_stay_while_the_reactor_drains
    reactor = @cluster.add_reactor
    shutdown.gracefully("TERM")
    3.times { shutdown.proceed }

    assert_equal [[[:drain]], [[], []]], [orders_of([reactor]), orders_of(workers)]
    assert workers.all?(&:ready?), "they serve what the reactor holds"
    assert_equal [[:drain]], orders_of([@cluster.current_mold]), "nobody is to be forked any more"
    assert_equal ["TERM"], service.pidfd.signals
    assert_in_delta now + 10 + Pando::Cluster::Shutdown::REACTOR_EXTRA, reactor.deadline, 1
  end

  def test_they_are_asked_when_the_reactor_is_gone
    reactor = @cluster.add_reactor
    shutdown.gracefully("TERM")
    @cluster.die(reactor, ClusterSupport.ended)
    2.times { shutdown.proceed }

    assert_equal [[:drain]] * 2, orders_of(workers), "once, and as they were to be asked"
    assert(workers.all? { |worker| worker.leaving? && worker.reason == "TERM" })
    workers.each { |worker| assert_in_delta now + 10, worker.deadline, 1 }
  end

  def test_they_are_asked_after_half_of_the_time
    reactor = @cluster.add_reactor
    shutdown.gracefully("TERM")
    elapse(4.9)
    shutdown.proceed
    assert_empty orders_of(workers).flatten
    elapse(0.2)
    shutdown.proceed

    assert_equal [[:drain]] * 2, orders_of(workers)
    workers.each { |worker| assert_in_delta now + 4.9, worker.deadline, 0.5 }
    assert_equal [[:drain], []], [reactor.link.orders, reactor.pidfd.signals], "it may go on to its own deadline"
  end

  def test_a_reactor_that_dies_while_it_drains_holds_nobody_up
    reactor = @cluster.add_reactor
    shutdown.gracefully("TERM")
    @cluster.die(reactor)
    shutdown.proceed

    assert_equal [[:drain]] * 2, orders_of(workers)
    assert_equal [[:lost, "TERM: signal KILL"]], @cluster.reactors.calls, "what it did last is to be told"
  end

  def test_who_dies_meanwhile_or_leaves_by_itself_is_not_asked
    reactor = @cluster.add_reactor
    shutdown.gracefully("TERM")
    first, second = workers
    @cluster.die(first)
    second.leave("out of memory", now + 10)
    @cluster.die(reactor, ClusterSupport.ended)
    shutdown.proceed

    assert_empty second.link.orders
    assert_equal "out of memory", second.reason
  end

  def test_who_is_not_ready_yet_is_not_held
    @cluster.rollout.resize(3)
    @cluster.turn
    @cluster.adopt(young = @cluster.starting.first)
    @cluster.add_reactor
    shutdown.gracefully("TERM")

    assert_equal [:leave], young.link.orders
    assert_equal [[], []], orders_of(workers.select(&:ready?))
  end

  def test_nobody_is_held_for_a_reactor_that_is_not_ready
    reactor = @cluster.add_reactor(ready: false)
    shutdown.gracefully("TERM")

    assert_equal [[:drain]] * 2, orders_of(workers)
    assert_equal ["KILL"], reactor.pidfd.signals, "it holds nobody"
  end

  def test_quickly_asks_all_at_once
    reactor = @cluster.add_reactor
    shutdown.quickly("INT")

    assert_equal [[:drain], *[[:leave]] * 2], orders_of([reactor, *workers])
    workers.each { |worker| assert_in_delta now + 1, worker.deadline, 0.5 }
    assert_in_delta now + 1 + Pando::Cluster::Shutdown::REACTOR_EXTRA, reactor.deadline, 0.5
    shutdown.proceed
    assert_equal [[:leave]] * 2, orders_of(workers)
  end

  def test_quickly_after_gracefully_asks_all_at_once
    reactor = @cluster.add_reactor
    shutdown.gracefully("TERM")
    shutdown.quickly("pando stop")

    assert_equal [[:leave]] * 2, orders_of(workers)
    workers.each { |worker| assert_in_delta now + 1, worker.deadline, 0.5 }
    assert_in_delta now + 1 + Pando::Cluster::Shutdown::REACTOR_EXTRA, reactor.deadline, 0.5
  end

  def test_quickly_after_gracefully_when_the_reactor_has_just_been_reaped
    reactor = @cluster.add_reactor
    shutdown.gracefully("TERM")
    @cluster.die(reactor, ClusterSupport.ended)
    shutdown.quickly("pando stop")

    assert_equal [[:leave]] * 2, orders_of(workers)
  end

  def test_at_once_waits_for_no_reactor
    reactor = @cluster.add_reactor
    shutdown.gracefully("TERM")
    shutdown.at_once("TERM")
    assert_equal([%w[KILL]] * 3, [reactor, *workers].map { |child| child.pidfd.signals })
    @cluster.die(reactor)
    elapse(20)
    shutdown.proceed

    assert_empty orders_of(workers).flatten
  end

  def test_it_is_not_complete_before_the_reactor_is_buried
    reactor = @cluster.add_reactor
    shutdown.gracefully("TERM")
    (all - [reactor]).each { |child| @cluster.die(child, ClusterSupport.ended) }

    refute_predicate shutdown, :complete?
    @cluster.die(reactor, ClusterSupport.ended)
    assert_predicate shutdown, :complete?
  end

  # Between the monitor's look at the links and the stop.
  def test_who_was_born_a_moment_ago_is_asked_to_leave_and_keeps_its_lane
    @cluster.rollout.resize(3)
    @cluster.turn
    newborn = @cluster.starting.first
    @cluster.reports = ->(child) { @cluster.ready(child) }
    shutdown.gracefully("TERM")

    refute_predicate newborn, :gone?
    assert_predicate newborn, :leaving?
    refute_predicate newborn.link, :closed?
  end

  def test_nobody_is_let_in_once_a_worker_has_found_the_queues_empty
    shutdown.gracefully("TERM")
    first, second = @cluster.roster.workers
    @cluster.die(first, ClusterSupport.killed)
    refute @cluster.doors_closed
    @cluster.die(second, ClusterSupport.ended)

    assert @cluster.doors_closed
  end
end
