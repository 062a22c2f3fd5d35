# frozen_string_literal: true

require "test_helper"
require_relative "support/simulation"

# The last worker that serves is not given up of the server's own will: whatever is to become of it, another one
# comes up first.
class VoluntaryLeaveTest < Minitest::Test
  include ClusterSupport::Clock
  include ClusterSupport::Listening

  def booted(**options) = @cluster = ClusterSupport::Simulation.new(**options).tap(&:boot)
  def rollout = @cluster.rollout
  def serving = @cluster.roster.ready_workers
  def only(slot) = @cluster.roster.workers.reject { |child| child.slot == slot }.each { |child| @cluster.die(child) }

  # Nobody comes up any more.
  def paralyse = @cluster.spawner.refusing = true

  # Whatever happens from now on, somebody serves.
  def settle_serving
    60.times do
      @cluster.settle(1) { refute_empty serving }
      refute_empty serving
      elapse(0.2)
    end
  end

  def test_a_worker_of_a_single_one_is_replaced_by_a_successor_first
    booted(workers: 1)
    before = @cluster.worker_in(0)
    rollout.renew(before, "too fat")
    settle_serving

    refute_equal before, @cluster.worker_in(0)
    assert_equal "too fat", events("worker.leaving").last[:reason]
    assert_equal 1, @cluster.roster.workers.size
  end

  # The metric of workers that outgrew their memory counts by it.
  def test_the_cause_is_told_when_it_leaves_at_last
    booted(workers: 1)
    rollout.renew(@cluster.worker_in(0), "too fat", cause: :memory)
    settle_serving

    assert_equal ["too fat", :memory], events("worker.leaving").last.payload.values_at(:reason, :cause)
  end

  def test_a_later_cause_does_not_replace_the_one_of_the_reason
    booted(workers: 1)
    @cluster.worker_in(0).replacement_reason = "a setting has changed"
    rollout.renew(@cluster.worker_in(0), "too fat", cause: :memory)
    settle_serving

    assert_equal ["a setting has changed", nil], events("worker.leaving").last.payload.values_at(:reason, :cause)
  end

  def test_even_with_a_surge_of_none
    booted(workers: 1, surge: 0, unavailable: 1)
    before = @cluster.worker_in(0)
    rollout.renew(before, "too fat")
    settle_serving

    refute_equal before, @cluster.worker_in(0)
  end

  def test_where_nobody_can_come_up_it_stays
    booted(workers: 2)
    paralyse
    rollout.renew(@cluster.worker_in(0), "too fat")
    rollout.renew(@cluster.worker_in(1), "too fat")
    settle_serving

    assert_equal [1], @cluster.slots
    @cluster.spawner.refusing = false
    settle_serving
    assert_equal [0, 1], @cluster.slots
    refute_predicate @cluster.worker_in(1), :replacement_wanted?
  end

  def test_a_refork_that_may_leave_all_slots_empty
    booted(workers: 2, surge: 0, unavailable: 2)
    @cluster.generations.refork("test")
    @cluster.ready(@cluster.upcoming_mold)
    settle_serving

    assert_equal [1, 1], @cluster.generations_of_workers
  end

  def test_a_refork_of_a_single_worker_that_may_leave_its_slot_empty
    booted(workers: 1, surge: 0, unavailable: 1)
    @cluster.generations.refork("test")
    @cluster.ready(@cluster.upcoming_mold)
    settle_serving

    assert_equal [1], @cluster.generations_of_workers
  end

  def test_scaling_down_to_slots_that_nobody_serves
    booted(workers: 3)
    paralyse
    only(2)
    rollout.resize(1)
    settle_serving

    assert_equal [2], @cluster.slots
    @cluster.spawner.refusing = false
    settle_serving
    assert_equal [0], @cluster.slots
  end

  def test_scaling_down_asks_all_but_the_last_at_once
    booted(workers: 4)
    paralyse
    @cluster.die(@cluster.worker_in(0))
    rollout.resize(1)
    @cluster.turn

    assert_equal 1, serving.size
  end

  def test_a_worker_that_wants_to_leave_by_itself_stays_until_another_one_serves
    booted(workers: 1)
    before = @cluster.worker_in(0)
    @cluster.child_events.child_wants_replacement(before, "timeout")

    assert_predicate before, :ready?
    assert_equal [:stay], before.link.orders
    settle_serving
    refute_equal before, @cluster.worker_in(0)
    assert_equal "timeout", events("worker.leaving").last[:reason]
  end

  def test_among_others_it_goes_at_once
    booted(workers: 2)
    before = @cluster.worker_in(0)
    @cluster.child_events.child_wants_replacement(before, "timeout")

    assert_predicate before, :leaving?
    assert_equal [:leave], before.link.orders
  end

  def test_while_the_server_stops_it_is_let_go
    booted(workers: 1)
    before = @cluster.worker_in(0)
    @cluster.shutdown.instance_variable_set(:@begun, true) # and this one serves what the reactor holds
    @cluster.shutdown.instance_variable_set(:@deadline, Pando::Sys.now + 10)
    @cluster.child_events.child_wants_replacement(before, "timeout")

    assert_predicate before, :leaving?
    assert_equal [:leave], before.link.orders
  end
end
