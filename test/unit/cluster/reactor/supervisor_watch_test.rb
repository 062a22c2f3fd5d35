# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "../support/reactor_supervisor_case"
require_relative "../support/fakes"

# Whether the reactor turns, and whether waiting requests are taken: which process must go if not.
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
    subscription = Pando::Events.subscribe("reactor.stalled") { |event| told << event.payload.values_at(:pid, :pool) }
    Pando::Sys::Scheduler.stub(:waits_for_disk?, ->(pid) { pid == reactor.pid }) do
      Pando::Events.about(pool: "web") { 58.times { elapse(1) && turn } } # as there are several
      assert_empty reactor.pidfd.signals
      assert_equal [[reactor.pid, nil]], told
      5.times { elapse(1) && turn }
    end

    assert_equal ["KILL"], reactor.pidfd.signals
  ensure
    Pando::Events.unsubscribe(subscription)
  end

  # It was blocked when the stop began; now it answers what it holds.
  def test_of_one_that_leaves_nothing_is_due
    with_reactor
    @roster.workers.first.row.claim(1, 0, 0)
    @setup.blocked = [3, 0]
    elapse(1)
    turn
    reactors.last.leave("TERM", now + 30)
    2.times { elapse(1) && turn(stopping: true) }

    assert_operator @supervisor.due, :>, now
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
    @setup.blocked = [3, 0]
    3.times { look }
    assert_equal([["KILL"], [], []], [idle, busy, reactor].map { |child| child.pidfd.signals })
    assert_equal([{ waiting: 3, idle: "0, 3", replaced: :worker, pool: 0 }], events("queue.blocked").map(&:payload))

    [idle, @roster.workers.first].each { |child| die(child) }
    worker
    3.times { look }
    assert_equal([["KILL"], []], [reactor, busy].map { |child| child.pidfd.signals })
    assert_equal :reactor, events("queue.blocked").last[:replaced]
  end

  # What helps one pool says nothing about another.
  def test_each_pool_is_watched_by_itself
    with_reactor
    other = worker(pool: 1)
    @supervisor.ready(reactors.last)
    [[0, 4], [2, 0]].each do |blocked|
      @setup.blocked = blocked
      3.times { look }
    end

    assert_equal([["KILL"], ["KILL"], []], [other, @roster.workers.first, reactors.last].map { _1.pidfd.signals })
    assert_equal([[1, 4, :worker], [0, 2, :worker]],
                 events("queue.blocked").map { |event| event.payload.values_at(:pool, :waiting, :replaced) })
  end

  def test_workers_that_take_what_waits_stay
    with_reactor
    only = @roster.workers.first
    @setup.blocked = [3, 0]
    5.times do
      look
      only.row.start_job("GET", "/", nil, nil)
      only.row.finish_job
    end
    @setup.blocked = [0, 0]
    5.times { look }

    assert_empty only.pidfd.signals
  end

  # The machine is busy, or they were stopped: they have not seen that something waits.
  def test_workers_that_do_not_stir_stay
    with_reactor
    @setup.blocked = [3, 0]
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

# Which workers let requests wait that they could take.
class ReactorProgressTest < Minitest::Test
  def setup
    @roster = ClusterSupport.roster
    @progress = Pando::Cluster::Reactor::Progress.new(@roster)
  end

  def worker
    child = @roster.admit(:worker, @roster.size, 0, ClusterSupport::FakeLink.new, nil)
    child.adopt(ClusterSupport::FakePidfd.new(1000 + @roster.size))
    child.become_ready
    child.row.beat
    child
  end

  def look(waiting: [1], beating: @roster.workers)
    @progress.look(waiting).tap { beating.each { |child| child.row.beat } }
  end

  def test_two_signs_of_life_beside_a_waiting_request_are_proof
    idle = worker

    assert_equal([[], [], [idle]], Array.new(3) { look })
    @progress.forget
    refute_predicate @progress, :doubtful?
    assert_empty look
  end

  def test_whoever_shows_no_life_may_not_have_been_asked
    worker

    assert_empty(Array.new(5) { look(beating: []) }.flatten)
  end

  def test_whoever_was_busy_meanwhile_is_not_to_blame
    only = worker
    5.times do
      assert_empty look
      only.row.start_job("GET", "/", nil, nil)
      assert_empty look
      only.row.finish_job
    end
  end

  def test_a_moment_without_a_request_begins_anew
    worker
    2.times { look }
    assert_predicate @progress, :doubtful?
    look(waiting: [])

    refute_predicate @progress, :doubtful?
    assert_empty(Array.new(2) { look }.flatten)
  end
end

# What a report says the workers are at.
class ReactorJobsTest < Minitest::Test
  def setup
    @roster = ClusterSupport.roster
    @jobs = Pando::Cluster::Reactor::Jobs.new(@roster)
  end

  def worker(path = nil, pool: 0)
    child = @roster.admit(:worker, @roster.size, 0, ClusterSupport::FakeLink.new, nil, pool)
    child.adopt(ClusterSupport::FakePidfd.new(1000 + @roster.size))
    child.become_ready
    child.row.start_job("GET", path, nil, nil) if path
    child
  end

  def test_without_a_worker_nothing_stands_still
    assert_nil @jobs.standstill
    assert_nil @jobs.to_line
    assert_equal 0, @jobs.workers
  end

  def test_an_idle_worker_is_no_standstill
    worker("/slow")
    worker

    assert_nil @jobs.standstill
    assert_equal "GET /slow", @jobs.to_line
    assert_equal 2, @jobs.workers
  end

  def test_a_standstill_lasts_until_another_request_begins
    slow = worker("/slow")
    before = @jobs.standstill
    refute_nil before
    assert_equal before, @jobs.standstill

    slow.row.finish_job
    slow.row.start_job("GET", "/slow", nil, nil)
    refute_equal before, @jobs.standstill
  end

  def test_those_of_one_pool
    worker
    worker("/reports", pool: 1)

    refute_nil @jobs.of(1).standstill
    assert_equal [1, "GET /reports", nil], [@jobs.of(1).workers, @jobs.of(1).to_line, @jobs.of(0).to_line]
  end

  def test_the_most_frequent_are_named_and_the_others_counted
    %w[/b /a /b /c /d /c /b].each { |path| worker(path) }

    assert_match %r{\AGET /b \(3\), GET /c \(2\), GET /[ad], and 1 more\z}, @jobs.to_line
  end
end
