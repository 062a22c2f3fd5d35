# frozen_string_literal: true

require "test_helper"
require_relative "support/simulation"

class ClusterRolloutTest < Minitest::Test
  include ClusterSupport::Clock
  include ClusterSupport::Listening

  def booted(**options) = ClusterSupport::Simulation.new(**options).tap(&:boot)

  # Begins a refork and brings its mold up.
  def reforking(cluster)
    cluster.generations.refork("test")
    cluster.ready(cluster.upcoming_mold)
    cluster.turn
  end

  # How many there were at each turn of a rollout: most at once, fewest that served.
  def extremes(cluster, &each)
    most = fewest = cluster.roster.ready_workers.size
    cluster.settle do
      most = [most, cluster.roster.workers.reject(&:leaving?).size].max
      fewest = [fewest, cluster.roster.ready_workers.size].min
      each&.call
    end
    [most, fewest]
  end

  def test_at_first_one_worker_shows_that_the_application_serves
    cluster = ClusterSupport::Simulation.new(workers: 3)
    cluster.generations.begin_boot
    cluster.turn
    assert_empty cluster.roster.workers
    cluster.ready(cluster.upcoming_mold).turn
    assert_equal [0], cluster.starting.map(&:slot)
    cluster.ready(cluster.starting.first).turn
    assert_equal [1, 2], cluster.starting.map(&:slot)
    cluster.starting.each { |child| cluster.ready(child) }
    cluster.turn

    assert_equal [0, 1, 2], cluster.slots
    assert_predicate cluster.generations.current, :current?
    assert_nil cluster.generations.upcoming
  end

  def test_surge_1_unavailable_0
    cluster = booted(workers: 4)
    reforking(cluster)

    assert_equal [5, 4], extremes(cluster)
    assert_equal [1] * 4, cluster.generations_of_workers
    assert_equal 1, cluster.generations.current.number
    assert_equal([0], events("generation.retired").map { |event| event[:generation] })
  end

  def test_surge_2
    cluster = booted(workers: 5, surge: 2)
    reforking(cluster)
    assert_equal 1, cluster.starting.size, "the canary comes alone"

    assert_equal [7, 5], extremes(cluster)
    assert_equal [1] * 5, cluster.generations_of_workers
  end

  def test_surge_0_unavailable_2
    cluster = booted(workers: 5, surge: 0, unavailable: 2)
    reforking(cluster)
    cluster.ready(cluster.starting.first) # the canary, beside the worker that it replaces
    cluster.leaving.each { |child| cluster.die(child, ClusterSupport.ended) }

    assert_equal [5, 3], extremes(cluster)
    assert_equal [1] * 5, cluster.generations_of_workers
  end

  def test_no_old_worker_leaves_before_its_successor_is_ready
    cluster = booted(workers: 3)
    reforking(cluster)
    cluster.settle { assert_equal [0, 1, 2], cluster.slots }

    assert_equal 3, events("worker.leaving").size
  end

  def test_the_canary_comes_alone_however_long_it_takes
    cluster = booted(workers: 4, surge: 3)
    reforking(cluster)
    10.times { cluster.turn }

    assert_equal [1], cluster.starting.map(&:generation)
    assert_equal [0] * 4, cluster.generations_of_workers
    assert_predicate cluster.generations.upcoming, :canary?
  end

  def test_one_worker_is_enough_for_a_rollout
    cluster = booted(workers: 1)
    reforking(cluster)

    assert_equal [2, 1], extremes(cluster)
    assert_equal [1], cluster.generations_of_workers
  end

  def test_scaling_up_and_down
    cluster = booted(workers: 2)
    cluster.rollout.resize(4)
    cluster.settle
    assert_equal [0, 1, 2, 3], cluster.slots
    cluster.rollout.resize(1)
    cluster.turn
    assert_equal [0], cluster.slots
    assert_equal ["scaled down"] * 3, cluster.leaving.map(&:reason)
    cluster.settle
    assert_equal 1, cluster.roster.workers.size
    assert_equal([[2, 4], [4, 1]], events("workers.scaled").map { |event| [event[:from], event[:to]] })
  end

  # Each thread has a lane to the reactor, also those of the worker that a rollout has too many.
  def test_threads_count
    cluster = booted(workers: 2)
    cluster.roster.workers.each { |worker| worker.threads = 64 }

    refute cluster.rollout.resize(16)
    assert cluster.rollout.resize(15)
  end

  # An old worker of many threads keeps its WebSockets for a while.
  def test_the_number_of_the_configuration_waits_for_lanes
    cluster = booted(workers: 2)
    old = cluster.roster.workers.first
    old.threads = 64
    cluster.options.workers = 16
    cluster.rollout.follow_configuration
    cluster.turn
    assert_equal 2, cluster.rollout.size
    old.threads = 5
    cluster.turn

    assert_equal 16, cluster.rollout.size
  end

  def test_an_operator_who_scales_meanwhile_has_the_last_word
    cluster = booted(workers: 2)
    cluster.roster.workers.first.threads = 64
    cluster.options.workers = 16
    cluster.rollout.follow_configuration
    assert cluster.rollout.scale(3)
    cluster.roster.workers.first.threads = 5
    cluster.turn

    assert_equal 3, cluster.rollout.size
  end

  # What an operator asks for leaves those of other pools alone.
  def test_lanes_of_other_pools_count
    cluster = booted(workers: 2)
    rollout = Pando::Cluster::Rollout.new(cluster.roster, cluster.spawner, cluster.generations, cluster.options,
                                          others: -> { 24 })
    assert_equal [false, true, 1000], [rollout.scale(1000), rollout.scale(999), rollout.lanes]
    cluster.roster.workers.each { |worker| worker.threads = 64 }

    assert_equal [false, true, 960], [rollout.scale(15), rollout.scale(14), rollout.lanes]
    assert rollout.resize(15), "the configuration asks for it"
  end

  def test_there_is_always_one_worker_and_never_more_than_seats
    cluster = booted(workers: 2)
    [0, -1, 100_000].each { |size| cluster.rollout.resize(size) }

    assert_equal 2, cluster.rollout.size
  end

  def test_scaling_in_the_middle_of_a_rollout
    cluster = booted(workers: 4)
    reforking(cluster)
    sizes = [6, 2, 3]
    cluster.settle { cluster.rollout.resize(sizes.shift) unless sizes.empty? }

    assert_equal [0, 1, 2], cluster.slots
    assert_equal [1, 1, 1], cluster.generations_of_workers
    assert_predicate cluster.generations.current, :current?
  end

  def test_a_dead_worker_is_replaced_in_its_slot
    cluster = booted(workers: 3)
    cluster.serve(cluster.worker_in(1))
    cluster.die(cluster.worker_in(1)).turn

    assert_equal [1], cluster.starting.map(&:slot)
    cluster.settle
    assert_equal [0, 1, 2], cluster.slots
  end

  def test_a_worker_that_crashes_is_replaced_before_it_has_ended
    cluster = booted(workers: 2)
    worker = cluster.worker_in(1)
    elapse(1)
    worker.row.start_job("GET", "/", nil, nil)
    cluster.child_events.child_crashing(worker)
    cluster.turn
    assert_equal [1], cluster.starting.map(&:slot)
    assert_predicate worker, :leaving?

    cluster.die(worker, ClusterSupport.killed(11)).settle
    lost = events("worker.lost").last
    assert_equal [worker.pid, "signal SEGV", "GET /"], [lost[:pid], lost[:reason], lost[:request]]
    assert_equal [0, 1], cluster.slots
  end

  def test_as_many_workers_as_there_are_slots_are_replaced_before_they_have_ended
    cluster = booted(workers: 1)
    first, second = Array.new(2) do
      elapse(1)
      worker = cluster.worker_in(0)
      worker.row.start_job("GET", "/", nil, nil)
      cluster.child_events.child_crashing(worker)
      cluster.turn
      cluster.starting.each { |child| cluster.ready(child) }
      worker
    end

    assert_equal [true, false], [first, second].map(&:leaving?)
    cluster.die(first).die(second).settle
    assert_equal [0], cluster.slots
  end

  # As it is with those that have died already.
  def test_workers_that_crash_at_once_are_not_forked_at_full_speed
    cluster = booted(workers: 1)
    worker = cluster.worker_in(0)
    worker.row.start_job("GET", "/", nil, nil)
    cluster.child_events.child_crashing(worker)
    cluster.turn
    assert_empty cluster.starting

    elapse(0.5)
    cluster.turn
    assert_equal [0], cluster.starting.map(&:slot)
  end

  def test_a_crash_of_a_worker_that_is_idle_or_of_a_mold_is_known_by_its_end
    cluster = booted(workers: 1)
    [cluster.worker_in(0), cluster.current_mold].each { |child| cluster.child_events.child_crashing(child) }

    assert_empty cluster.leaving
  end

  def test_deaths_in_the_middle_of_a_rollout_are_filled_from_what_is_known_to_work
    cluster = booted(workers: 4)
    reforking(cluster)
    cluster.die(cluster.worker_in(3)).turn
    assert_equal [[3, 0], [0, 1]].sort, cluster.starting.map { |child| [child.slot, child.generation] }.sort

    cluster.ready(cluster.starting.find { |child| child.generation == 1 })
    cluster.die(cluster.worker_in(2)).turn
    assert_includes cluster.starting.map { |child| [child.slot, child.generation] }, [2, 1]
    cluster.settle
    assert_equal [1] * 4, cluster.generations_of_workers
  end

  def test_everybody_dies_in_the_middle_of_a_rollout
    cluster = booted(workers: 3)
    reforking(cluster)
    [*cluster.roster.workers, cluster.current_mold].each { |child| cluster.die(child) }
    2.times { elapse(40) && cluster.settle }

    assert_equal [0, 1, 2], cluster.slots
    assert_nil cluster.given_up
    assert_equal cluster.generations_of_workers.uniq, [cluster.generations.current.number]
  end

  def test_an_order_that_cannot_be_given_waits
    cluster = booted(workers: 2)
    cluster.spawner.refusing = true
    cluster.die(cluster.worker_in(0)).turn
    assert_in_delta now + 0.25, cluster.rollout.due, 0.2
    cluster.spawner.refusing = false
    cluster.turn
    assert_empty cluster.starting
    elapse(0.3)
    cluster.turn

    assert_equal [0], cluster.starting.map(&:slot)
    assert_nil cluster.rollout.due
  end

  def test_who_wants_to_leave_is_replaced
    cluster = booted(workers: 2)
    cluster.serve(worker = cluster.worker_in(0))
    cluster.child_events.child_leaving(worker, "too large")
    cluster.turn

    assert_equal [0], cluster.starting.map(&:slot)
    assert_predicate worker, :leaving?
    assert_in_delta now + 10, worker.deadline, 1
  end

  def test_who_wants_to_leave_at_once_is_not_forked_for_ever
    cluster = booted(workers: 1)
    starts = 0
    200.times do
      cluster.turn
      cluster.starting.each { |child| cluster.ready(child) && (starts += 1) }
      cluster.roster.ready_workers.each { |child| cluster.child_events.child_leaving(child, "I do not like it here") }
      cluster.leaving.each { |child| cluster.die(child, ClusterSupport.ended) }
    end

    assert_operator starts, :<, 5
    elapse(30)
    cluster.turn
    assert_equal 1, cluster.starting.size
  end

  def test_a_wish_to_leave_is_heard_once
    cluster = booted(workers: 1)
    worker = cluster.worker_in(0)
    cluster.child_events.child_leaving(worker, "first")
    deadline = worker.deadline
    elapse(5)
    cluster.child_events.child_leaving(worker, "again")

    assert_equal deadline, worker.deadline
    assert_equal 1, events("worker.leaving").size
  end

  # Workers that have been replaced, and keep their connections for 600 seconds.
  def draining(reforks)
    cluster = booted(workers: 1, drain: 600.0)
    Array.new(reforks) do
      old = cluster.worker_in(0)
      reforking(cluster)
      cluster.ready(cluster.starting.first).turn
      elapse(1)
      old
    end.unshift(cluster)
  end

  def test_a_replaced_worker_is_asked_to_leave_last
    cluster, old = draining(1)

    assert_equal([:leave_last], old.link.orders.last(1))
    assert_in_delta now + 599 + 10, old.deadline, 1, "its stop_timeout begins when the time of drain is over"
    assert_in_delta 599, old.drain_left, 1
    assert_predicate cluster.generations.current, :current?, "the rollout does not wait for it"
    assert_equal([600.0], events("worker.leaving").map { |event| event[:drain] })
    elapse(600)
    refute_predicate old, :draining?
  end

  def test_without_room_for_another_worker_the_one_that_leaves_longest_hurries
    cluster, first, second = draining(2)
    cluster.spawner.crowded = true
    cluster.die(cluster.worker_in(0))
    3.times { cluster.turn }

    assert_equal(%i[leave_last leave], first.link.orders.last(2))
    assert_equal(:leave_last, second.link.orders.last, "one at a time")
    assert_in_delta now + 10, first.deadline, 1
    assert_equal([first.pid], events("worker.hurried").map { |event| event[:pid] })
    assert_empty cluster.starting
    cluster.die(first, ClusterSupport.ended)
    cluster.spawner.crowded = false
    assert_equal 1, cluster.turn.starting.size
  end

  def test_workers_with_fewer_connections_are_replaced_first
    cluster = booted(workers: 3)
    cluster.worker_in(0).row.connections = 500
    cluster.worker_in(1).row.connections = 2
    reforking(cluster)
    order = []
    cluster.settle { order |= cluster.starting.map(&:slot) }

    assert_equal [2, 1, 0], order
  end
end
