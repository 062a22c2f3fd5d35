# frozen_string_literal: true

require "test_helper"
require_relative "../support/reactor_supervisor_case"

# Whether the reactor turns, and whether what waits is taken: who must go if not.
class ReactorSupervisorWatchTest < Minitest::Test
  include ClusterSupport::SupervisorCase

  def test_one_that_stands_still_is_killed
    with_reactor
    reactor = reactors.last
    @setup.stuck = true
    14.times { elapse(1) && turn }
    assert_empty reactor.pidfd.signals
    3.times { elapse(1) && turn }

    assert_equal ["KILL"], reactor.pidfd.signals
  end

  def test_one_that_waits_for_a_disk_has_a_minute
    with_reactor
    reactor = reactors.last
    @setup.stuck = true
    told = []
    subscription = Pando::Events.subscribe("reactor.stalled") { |event| told << event[:pid] }
    Pando::Cluster::Reactor::DiskWait.stub(:of?, ->(pid) { pid == reactor.pid }) do
      58.times { elapse(1) && turn }
      assert_empty reactor.pidfd.signals
      assert_equal [reactor.pid], told
      5.times { elapse(1) && turn }
    end

    assert_equal ["KILL"], reactor.pidfd.signals
  ensure
    Pando::Events.unsubscribe(subscription)
  end

  def test_when_clients_were_heard_last
    assert_nil @supervisor.heard_at(now), "there is no reactor"
    with_reactor
    3.times { elapse(1) && turn }
    assert_in_delta now, last = @supervisor.heard_at(now), 0.5
    @setup.stuck = true
    2.times { elapse(1) && turn } # what it did before is seen once more
    still = @supervisor.heard_at(now)
    9.times { elapse(1) && turn }
    assert_equal still, @supervisor.heard_at(now)
    assert_operator still, :<, last + 1.5
    6.times { elapse(1) && turn }
    assert_nil @supervisor.heard_at(now), "it is killed"
  end

  def test_one_that_turns_when_it_is_asked_lives
    with_reactor
    reactor = reactors.last
    60.times { elapse(1) && turn }

    assert_empty reactor.pidfd.signals
  end

  # A look, after which all workers have shown that they live.
  def look
    elapse(1)
    turn
    @roster.workers.each { |worker| worker.row.beat }
  end

  def test_idle_workers_that_take_nothing_are_replaced_and_then_the_reactor
    with_reactor
    reactor = reactors.last
    busy = worker
    idle = worker
    @supervisor.ready(reactor)
    busy.row.start_job("GET", "/", nil, nil)
    @setup.blocked = true
    3.times { look }
    assert_equal([["KILL"], [], []], [idle, busy, reactor].map { |child| child.pidfd.signals })
    assert_equal([{ waiting: 3, idle: "0, 3", replaced: :worker }], events("queue.blocked").map(&:payload))

    [idle, @roster.workers.first].each { |child| die(child) }
    worker
    3.times { look }
    assert_equal([["KILL"], []], [reactor, busy].map { |child| child.pidfd.signals })
    assert_equal :reactor, events("queue.blocked").last[:replaced]
  end

  def test_workers_that_take_what_waits_stay
    with_reactor
    only = @roster.workers.first
    @setup.blocked = true
    5.times do
      look
      only.row.start_job("GET", "/", nil, nil)
      only.row.finish_job
    end
    @setup.blocked = false
    5.times { look }

    assert_empty only.pidfd.signals
  end

  # The machine is busy, or they were stopped: they have not seen that something waits.
  def test_workers_that_do_not_stir_stay
    with_reactor
    @setup.blocked = true
    5.times { elapse(1) && turn }
    @setup.stuck = true
    5.times { look }

    assert_empty @roster.workers.first.pidfd.signals
  end

  def test_one_that_was_stopped_together_with_us_gets_time_to_stir
    with_reactor
    reactor = reactors.last
    @setup.stuck = true
    elapse(3600)
    turn

    assert_empty reactor.pidfd.signals
  end
end
