# frozen_string_literal: true

require "test_helper"
require_relative "../support/memory_guard_case"

# Workers that leave and keep their connections, and their memory, for as long as `drain` allows.
class MemoryGuardConnectionsTest < Minitest::Test
  include ClusterSupport::MemoryGuardCase

  # @return [Child] of slot 0, which has outgrown the limit, keeps its WebSockets, and has a successor
  def start_draining(**limits)
    start(**limits)
    leaver = keep_connections(0)
    grow(0, 110)
    look
    assert_predicate(leaver, :draining?)
    replace(leaver)
  end

  def keep_connections(slot, count = 5)
    @cluster.options.drain = 600.0
    worker(slot).tap { |one| one.row.connections = count }
  end

  def replace(leaver)
    @cluster.turn.starting.each { |one| @cluster.ready(one) && @source[one.pid] = 20 }
    refute_same(leaver, worker(leaver.slot))
    leaver
  end

  def hurried = events("worker.hurried").map { |event| event[:pid] }

  def test_who_keeps_its_connections_is_not_waited_for_once_its_successor_serves
    start(worker: 100)
    leaver = keep_connections(0)
    2.times { |slot| grow(slot, 120 - slot) }
    look(3)
    assert_equal([0], leaving, "one at a time, until another serves in its place")
    replace(leaver)
    look

    assert_equal([0, 1], leaving.sort)
    assert_empty(hurried)
  end

  # The last one leaves once its successor is ready, and it is still known why.
  def test_the_last_one_that_keeps_its_connections_is_not_waited_for_either
    start(worker: 100, workers: 1)
    2.times do
      leaver = keep_connections(0)
      grow(0, 110)
      look
      replace(leaver)
      assert_predicate(leaver, :draining?)
    end

    assert_equal(2, @cluster.leaving.size)
  end

  def test_who_keeps_its_connections_gives_them_up_when_memory_is_short_and_it_has_most
    leaver = start_draining(worker: 100, total: 150)
    look(8)

    assert_equal([leaver.pid], hurried)
    assert_equal(%i[leave_last leave], leaver.link.orders.last(2))
    refute_predicate(leaver, :draining?)
    assert_match(/\Aall processes together take .* of 150.0 MiB, and of all workers it has most private memory/,
                 events("worker.hurried").last[:reason])
    assert_equal([leaver], @cluster.leaving, "the others stay until its end shows")
  end

  def test_who_streams_gives_that_up_as_well
    leaver = start_draining(worker: 100, total: 150)
    leaver.row.connections = 0
    leaver.row.start_job("GET", "/events", nil, nil)
    leaver.row.streaming!
    look(8)

    assert_equal([leaver.pid], hurried)
  end

  def test_who_keeps_its_connections_keeps_them_when_memory_is_short_and_another_has_more
    leaver = start_draining(total: 200, worker: 100)
    grow(1, 99)
    @source[leaver.pid] = 90
    look(20)

    assert_empty(hurried)
    assert_equal([0, 1], leaving.sort)
  end

  # It was told to leave for that, and has freed nothing.
  def test_who_was_to_relieve_and_keeps_its_connections_gives_them_up
    start(total: 150)
    leaver = keep_connections(1)
    grow(1, 90)
    look(8)
    assert_predicate(leaver, :draining?)
    replace(leaver)
    look(20)

    assert_equal([leaver.pid], hurried)
    assert_equal([leaver], @cluster.leaving)
  end

  def start_all_but_full
    start(workers: 3)
    keep(options(group: 90), -> {}, Struct.new(:memory).new(Pando::Sys::ControlGroup::Memory.new(96 * MIB, 100 * MIB)))
    grow(1, 50)
  end

  def test_who_keeps_its_connections_gives_them_up_at_once_when_the_control_group_is_all_but_full
    start_all_but_full
    leaver = keep_connections(1)
    look(2)

    assert_equal([leaver.pid], hurried)
    assert_equal([1], leaving)
  end

  def test_who_has_no_connections_leaves_by_itself_although_it_might_keep_some
    start_all_but_full
    keep_connections(1, 0)
    look(2)

    assert_empty(hurried)
    assert_equal(2, leaving.size)
  end

  def test_who_keeps_its_connections_gives_them_up_beyond_the_hard_limit
    leaver = start_draining(worker: 100, hard: 200)
    @source[leaver.pid] = 199
    look
    assert_empty(hurried)
    @source[leaver.pid] = 201
    look(2)

    assert_equal([leaver.pid], hurried)
    assert_empty(leaver.pidfd.signals)
    assert_equal("its private memory is 201.0 MiB, over the hard limit of 200.0 MiB",
                 events("worker.hurried").last[:reason])
  end

  # The others have their turn.
  def test_who_is_leaving_is_not_measured_below_the_hard_limit
    leaver = start_draining(worker: 100, hard: 200)
    @source.measured.clear
    look(5)

    refute_includes(@source.measured, leaver.pid)
  end
end
