# frozen_string_literal: true

require "test_helper"
require "pando/batch"
require_relative "support/batches"

# How many items may be open at once. Of a run, the items that wait behind another one of their key do not count.
class BatchRoomTest < Minitest::Test
  include BatchSupport

  def setup
    @gate = Thread::Queue.new
    @seen = Thread::Queue.new
  end

  def test_a_poison_message_with_many_of_its_key_behind_it_delays_no_other_key
    batch(threads: 1, capacity: 2, attempts: 2, backoff: PATIENCE..PATIENCE)
    runner = Thread.new do
      @batch.run([*1..5, :other], key: :class) do |item|
        @seen << item
        raise "poison" if item == 1
      end
    end

    wait_until(timeout: PATIENCE) { @batch.done == 1 }
    assert_equal [1, :other], Array.new(@seen.size) { @seen.pop }
    @batch.stop
    assert_equal [*1..5], runner.value.unfinished
    assert_equal [:other], runner.value.done
  end

  def test_items_behind_their_key_take_no_room_until_their_turn
    runner = run_behind_gate
    assert @batch.push(:pushed, timeout: PATIENCE)
    refute @batch.push(:too_much, timeout: 0.001)
    5.times { @gate << true }

    assert_equal [*1..4], runner.value.done
    assert @batch.wait(PATIENCE)
    assert_room 2
  end

  def test_an_item_that_was_pushed_between_them_gives_its_room_back
    runner = run_behind_gate
    assert @batch.push(:pushed, key: true, timeout: PATIENCE)
    5.times { @gate << true }

    assert_equal [*1..4], runner.value.done
    assert @batch.wait(PATIENCE)
    assert_equal [1, 2, 3, 4, :pushed], Array.new(@seen.size) { @seen.pop }
    assert_room 2
  end

  def test_a_run_that_is_given_up_gives_its_room_back
    runner = run_behind_gate
    runner.kill.join
    @gate << true

    assert @batch.wait(PATIENCE)
    assert_equal 1, @seen.size
    assert_room 2
  end

  def test_a_waiting_caller_has_its_turn_before_the_next_item_of_a_run
    runner = run_behind_gate(capacity: 1)
    pusher = Thread.new { @batch.push(:pushed) }
    wait_until(timeout: PATIENCE) { pusher.stop? }
    5.times { @gate << true }

    assert pusher.value
    assert_equal [*1..4], runner.value.done
    assert @batch.wait(PATIENCE)
    assert_equal [1, :pushed, 2, 3, 4], Array.new(@seen.size) { @seen.pop }
    assert_room 1
  end

  def test_a_stop_gives_back_items_that_wait_for_room
    runner = run_behind_gate(capacity: 1)
    pusher = Thread.new { @batch.push(:pushed) }
    wait_until(timeout: PATIENCE) { pusher.stop? }
    @gate << true
    wait_until(timeout: PATIENCE) { @seen.size == 2 }
    @batch.stop(within: 0)

    assert_equal [2, 3, 4], runner.value.unfinished
  end

  # A stop gives such items back, so a node does not wait for them.
  def test_items_that_wait_for_room_behind_one_that_waits_for_its_next_attempt_are_not_busy
    runner = run_behind_gate(capacity: 1, attempts: 2, backoff: PATIENCE..PATIENCE)
    pusher = Thread.new { @batch.push(:pushed) { raise "poison" } }
    wait_until(timeout: PATIENCE) { pusher.stop? }
    @gate << true

    assert pusher.value
    wait_until(timeout: PATIENCE) { @batch.only_retries? }
    @batch.stop(within: 0)
    assert_equal [2, 3, 4], runner.value.unfinished
  end

  def test_a_run_keeps_the_order_of_its_keys_however_little_room_there_is
    [1, 2, 50].each do |capacity|
      seen = Hash.new { |hash, key| hash[key] = [] }
      result = Batch.new(threads: 3, capacity: capacity).then do |batch|
        batch.run(1..100, key: ->(item) { item % 4 }) { |item| seen[item % 4] << item }
      ensure
        batch.stop
      end

      assert_equal [*1..100], result.done
      assert_equal [*1..100].group_by { |item| item % 4 }, seen
    end
  end

  private

  # Four items of the key true: the first waits at the gate, the others behind it.
  def run_behind_gate(capacity: 2, **options)
    batch(threads: 1, capacity: capacity, **options) { |item| (@seen << item) && @gate.pop }
    runner = Thread.new { @batch.run(1..4, key: ->(_) { true }) }
    wait_until(timeout: PATIENCE) { @gate.num_waiting == 1 && runner.stop? }
    runner
  end

  def assert_room(count)
    count.times { assert @batch.push(:one, timeout: PATIENCE) }
    refute @batch.push(:too_much, timeout: 0.001)
    count.times { @gate << true }
    assert @batch.wait(PATIENCE)
  end
end
