# frozen_string_literal: true

require "test_helper"
require_relative "../support/reactor_supervisor_case"

# When there is a reactor, and what it hears of the workers.
class ReactorSupervisorTest < Minitest::Test
  include ClusterSupport::SupervisorCase

  def test_the_first_one_starts_with_the_first_worker_that_is_ready
    unready = worker(ready: false)
    turn
    assert_empty reactors
    unready.become_ready
    turn

    assert_equal 1, reactors.size
    turn
    assert_equal 1, reactors.size
  end

  def test_it_is_told_of_all_lanes_once
    3.times { worker }
    turn
    turn

    assert_equal([[:lane_open, 0, 3], [:lane_open, 1, 3], [:lane_open, 2, 3]], orders)
  end

  def test_it_is_told_of_workers_that_come_and_go
    with_reactor
    second = worker
    turn
    die(second)
    turn

    assert_equal([[:lane_open, 0, 3], [:lane_open, 1, 3], [:lane_dead, 1, 0]], orders)
  end

  def test_after_a_death_another_one_starts_at_once_even_without_a_worker
    with_reactor
    elapse(5)
    @roster.workers.each { |child| die(child) }
    die(reactors.last)
    turn

    assert_equal 2, reactors.size
    assert_empty orders
  end

  def test_a_new_one_is_told_of_all_living_workers
    with_reactor
    workers = Array.new(3) { worker }
    turn
    elapse(5)
    die(workers[1])
    die(reactors.last)
    turn

    assert_equal([[:lane_open, 0, 3], [:lane_open, 1, 3], [:lane_open, 3, 3]], orders)
  end

  def test_what_happens_while_there_is_none_is_not_told_twice
    with_reactor
    4.times { die(reactors.last) || turn } # too often: there is a pause
    gone = worker
    worker
    die(gone)
    turn
    elapse(1)
    turn

    assert_equal([[:lane_open, 0, 3], [:lane_open, 2, 3]], orders)
  end

  def test_one_that_dies_again_and_again_is_followed_by_another_after_a_pause
    with_reactor
    3.times do
      die(reactors.last)
      turn
      refute_nil @roster.reactor
    end
    pauses = Array.new(5) do
      die(reactors.last)
      turn
      assert_nil @roster.reactor
      (@throttles.due - now).tap do |pause|
        elapse(pause + 0.001)
        turn
        refute_nil @roster.reactor
      end
    end

    [0.25, 0.5, 1.0, 1.0, 1.0].zip(pauses) { |expected, pause| assert_in_delta expected, pause, 0.1 }
  end

  def test_one_that_dies_now_and_then_is_followed_at_once_for_ever
    with_reactor
    20.times do
      die(reactors.last)
      turn
      refute_nil @roster.reactor
      elapse(Pando::Cluster::Backoff::QUIET + 1)
    end

    assert_empty events("restart.throttled")
  end

  def test_one_that_cannot_be_had_is_tried_for_again
    worker
    @spawner.refusing = true
    turn
    assert_in_delta 0.25, @throttles.due - now, 0.1
    @spawner.refusing = false
    turn
    assert_empty reactors
    elapse(0.3)
    turn

    assert_equal([[:lane_open, 0, 3]], orders)
  end

  def test_the_first_one_that_cannot_be_had_waits_for_a_worker_again
    only = worker
    @spawner.refusing = true
    turn
    @spawner.refusing = false
    die(only)
    elapse(5)
    turn

    assert_empty reactors
  end

  def test_a_full_link_is_tried_again_soon_and_in_order
    with_reactor
    reactors.last.link.room = 1
    3.times { worker }
    turn
    assert_in_delta 0.02, @supervisor.due - now, 0.01
    turn
    assert_equal([0, 1], orders.map { |order| order[1] })
    reactors.last.link.room = 9
    turn

    assert_equal([0, 1, 2, 3], orders.map { |order| order[1] })
    assert_operator @supervisor.due - now, :>, 0.1, "nothing is left to be told"
  end

  def test_what_a_full_link_could_not_take_is_nothing_to_a_new_one
    with_reactor
    reactors.last.link.room = 0
    gone = worker
    die(gone)
    turn
    elapse(5)
    die(reactors.last)
    turn

    assert_equal([[:lane_open, 0, 3]], orders)
  end

  def test_a_damaged_lane_ends_its_worker_and_nobody_else
    with_reactor
    victim = worker
    others = @roster.to_a - [victim]
    @supervisor.lane_corrupt(1)

    assert_equal ["KILL"], victim.pidfd.signals
    assert_match(/lane .* damaged/, victim.reason)
    assert_empty(others.flat_map { |child| child.pidfd.signals })
  end

  def test_a_lane_that_is_nobodys_ends_nobody
    with_reactor
    die(worker)
    turn
    [1, 2, 4, 0xFFFF_FFFF].each { |number| @supervisor.lane_corrupt(number) }

    assert_empty(@roster.flat_map { |child| child.pidfd.signals })
  end

  def test_while_the_server_stops_none_is_started
    worker
    turn(stopping: true)
    assert_empty reactors
    turn
    elapse(5)
    die(reactors.last)
    3.times { turn(stopping: true) }

    assert_equal 1, reactors.size
  end

  def test_while_the_server_stops_the_one_that_lives_is_told
    with_reactor
    die(@roster.workers.first)
    turn(stopping: true)

    assert_equal [:lane_dead, 0, 0], orders.last
  end

  def test_it_reports_once_a_second_and_a_last_time
    worker
    elapse(5)
    turn
    assert_equal 1, @setup.reports
    turn
    assert_equal 1, @setup.reports
    assert_in_delta 1.0, @supervisor.due - now, 0.1
    elapse(1)
    turn
    assert_equal 2, @setup.reports
    die(reactors.last)

    assert_equal 3, @setup.reports
  end

  def test_nothing_is_due_before_there_is_a_worker
    assert_nil @supervisor.due
  end

  def test_what_it_says_of_a_reactor
    with_reactor
    @supervisor.ready(reactors.last)

    assert_equal([{ pid: 100, pool: nil }], events("reactor.ready").map(&:payload))
    assert_equal({ connections: 3, requests: 2 }, @supervisor.in_flight)
  end
end
