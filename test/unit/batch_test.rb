# frozen_string_literal: true

require "test_helper"
require "pando/batch"
require_relative "batch/support/batches"

class BatchTest < Minitest::Test
  include BatchSupport

  def stderr_of(&block) = capture_io(&block).last

  def test_a_batch_is_done_and_its_values_are_in_the_order_of_its_items
    result = batch.run(1..50) { |item| item * 2 }

    assert_predicate result, :success?
    assert_equal((1..50).to_a, result.done)
    assert_equal((1..50).map { |item| item * 2 }, result.values)
    assert_empty result.failed
    assert_equal [50, 50, 0], [@batch.progress, @batch.done, @batch.failed]
    refute_predicate @batch, :busy?
    assert_nil @batch.healthy?
  end

  def test_no_items_no_wait
    assert_predicate batch.run([]) { flunk }, :success?
  end

  def test_an_item_whose_key_raises_fails_as_any_other
    dead = []
    keys = 0
    key = ->(item) { (keys += 1) && item == "bad" ? raise(KeyError, "no key") : item }
    result = batch(attempts: 2, dead_letter: ->(item, error) { dead << [item, error.class] })
             .run(%w[one bad two], key: key) { |item| item }

    assert_equal %w[one two], result.done
    assert_equal([["bad", "no key", 2]], result.failed.map { |one| [one.item, one.error.message, one.attempts] })
    assert_equal [["bad", KeyError]], dead
    assert_equal 3, keys
  end

  def test_items_are_done_side_by_side
    meeting = Thread::Queue.new
    both = Thread::Queue.new
    result = batch(threads: 2).run(%i[a b], timeout: PATIENCE) do |item|
      meeting << item
      both << true if meeting.size == 2
      both.pop.tap { both << true }
    end

    assert_predicate result, :success?
  end

  def test_what_fails_is_tried_again_as_often_as_was_said
    tries = Hash.new(0)
    result = batch(attempts: 3).run(%w[well late never], key: :itself) do |item|
      tries[item] += 1
      raise "not yet" if item == "never" || (item == "late" && tries[item] < 3)

      item
    end

    assert_equal %w[well late], result.done
    assert_equal({ "well" => 1, "late" => 3, "never" => 3 }, tries)
    assert_equal([["never", "not yet", 3]], result.failed.map { |one| [one.item, one.error.message, one.attempts] })
    assert_predicate result, :complete?
    refute_predicate result, :success?
    assert_equal [7, 2, 1], [@batch.progress, @batch.done, @batch.failed]
  end

  def test_only_some_errors_are_worth_another_attempt
    tries = Hash.new(0)
    worth = [IOError, ->(error) { error.message == "busy" }]
    batch(attempts: 2, retry_on: worth).run([IOError.new, RuntimeError.new("busy"), RuntimeError.new("no")]) do |error|
      tries[error.message] += 1
      raise error
    end

    assert_equal({ "IOError" => 2, "busy" => 2, "no" => 1 }, tries)
  end

  def test_dead_letters_are_written_in_the_items_turn
    log = []
    dead = ->(item, error) { log << [:dead, item, error.message] }
    batch(attempts: 2, dead_letter: dead).run(%w[a1 a2 a3], key: ->(item) { item[0] }) do |item|
      log << item
      raise "bad" if item == "a2"
    end

    assert_equal ["a1", "a2", "a2", [:dead, "a2", "bad"], "a3"], log
  end

  def test_an_item_whose_dead_letter_failed_is_not_settled
    result = nil
    said = stderr_of do
      result = batch(dead_letter: ->(*) { raise "no room for the dead" }).run([1]) { raise "bad" }
    end

    assert_equal [[1], []], [result.unfinished, result.failed]
    assert_match(/bad.*no room for the dead/m, said)
  end

  def test_a_dead_letter_whose_thread_is_killed_is_not_written_twice
    calls = 0
    dead = lambda do |*|
      calls += 1
      Thread.exit
    end
    said = stderr_of { assert_equal [1], batch(dead_letter: dead).run([1]) { raise "bad" }.unfinished }

    assert_equal 1, calls
    assert_match(/in the middle of its dead letter/, said)
  end

  def test_however_an_item_is_left_it_is_accounted_for
    ways = { "raise" => -> { raise "x" }, "throw" => -> { throw :out }, "exit" => -> { exit },
             "no StandardError" => -> { raise NotImplementedError }, "Thread.exit" => -> { Thread.exit },
             "kill" => -> { Thread.current.kill }, "stack" => -> { deep }, "interrupt" => -> { raise Interrupt } }
    result = batch(threads: 2).run(ways.keys) { |way| ways[way].call }

    assert_equal ways.keys, result.failed.map(&:item)
    assert_equal([%w[Thread.exit Pando::Batch::ThreadKilled], %w[kill Pando::Batch::ThreadKilled]],
                 result.failed.map { |one| [one.item, one.error.class.name] }
                       .select { |_, error| error.start_with?("Pando") })
    assert_predicate @batch.run(1..10) { |item| item }, :success?
  end

  def deep = deep + 1

  def test_break_and_return_end_the_item_only
    failed = batch.run([1, 2]) { |item| item == 1 ? (break item) : item }.failed

    assert_equal([LocalJumpError], failed.map { |one| one.error.class })
  end

  def test_killed_threads_are_replaced_while_they_wait_too
    before = Thread.list
    batch(threads: 3).start
    10.times do
      victim = own_threads(before).sample
      victim.kill
      victim.join
      wait_until(timeout: PATIENCE) { own_threads(before).size == 3 }
    end

    assert_nil @batch.healthy?
    assert_predicate @batch.run(1..10) { |item| item }, :success?
  end

  def test_a_thread_that_another_raises_in_is_replaced_too
    before = Thread.list
    batch(threads: 1).start
    victim = own_threads(before).first
    said = stderr_of do
      victim.raise(IOError, "from elsewhere")
      victim.join
    end

    assert_match(/thread of batch ended:.*from elsewhere/, said)
    assert_predicate @batch.run([1]) { |item| item }, :success?
    assert_empty @batch.stop
  end

  def test_push_waits_for_room
    gate = Thread::Queue.new
    batch(threads: 1, capacity: 2) { gate.pop }
    2.times { |item| assert @batch.push(item) }

    refute @batch.push(3, timeout: 0.001)
    pushed = Thread.new { @batch.push(4) }
    wait_until(timeout: PATIENCE) { pushed.stop? }
    gate << :go

    assert pushed.value
    refute @batch.wait(0.001)
    2.times { gate << :go }
    assert @batch.wait(PATIENCE)
    assert_equal [3, false], [@batch.done, @batch.busy?]
  end

  # A pushed item of the same key that got the only place, behind those of the run, would end neither.
  def test_a_run_and_a_push_of_one_key_end_although_there_is_one_place
    gate = Thread::Queue.new
    batch(threads: 1, capacity: 1) { |item| gate.pop && item }
    run = Thread.new { @batch.run([1, 2, 3], key: ->(_) { "key" }) }
    wait_until(timeout: PATIENCE) { gate.num_waiting == 1 && run.stop? }
    push = Thread.new { @batch.push(4, key: "key") }
    wait_until(timeout: PATIENCE) { push.stop? }
    4.times { gate << :go }

    assert run.join(PATIENCE), "the run hangs"
    assert_equal [1, 2, 3], run.value.done
    assert @batch.wait(PATIENCE)
    assert_equal [4, 0], [@batch.done, @batch.failed]
  end

  def test_who_gives_up_waiting_for_room_takes_no_place
    gate = Thread::Queue.new
    batch(threads: 1, capacity: 1) { gate.pop }
    @batch << 1
    waiting = Array.new(3) { Thread.new { @batch.push(2) } }
    wait_until(timeout: PATIENCE) { waiting.all?(&:stop?) }
    waiting.each(&:kill).each(&:join)
    gate << :go

    assert @batch.wait(PATIENCE)
    assert @batch.push(3, timeout: PATIENCE)
    gate << :go
    assert @batch.wait(PATIENCE)
  end

  def test_an_item_that_was_pushed_fails_aloud
    said = stderr_of do
      batch { raise "bad luck" }
      @batch << 1
      @batch.wait(PATIENCE)
    end

    assert_match(/no dead_letter:.*bad luck/m, said)
  end

  def test_a_run_that_takes_too_long_is_not_waited_for
    gate = Thread::Queue.new
    seen = Thread::Queue.new
    result = batch(threads: 1).run([1, 2, 3], timeout: 0.05) do |item|
      seen << item
      gate.pop if item == 2
    end

    assert_includes [[1], []], result.done # a busy machine may not even have begun
    assert_equal [1, 2, 3] - result.done, result.unfinished
    gate << :go
    assert @batch.wait(PATIENCE)
    refute_includes Array.new(seen.size) { seen.pop }, 3 # it was withdrawn
    assert_equal [1, 2, 3] - result.done, result.unfinished # and it stays as it was told
  end

  def test_what_a_run_has_given_up_does_not_hold_up_its_key
    tried = Thread::Queue.new
    batch(attempts: 2, backoff: PATIENCE..PATIENCE)
    runner = Thread.new do
      @batch.run([1], key: :odd?) { (tried << true) && raise("later") }
    end
    tried.pop
    wait_until(timeout: PATIENCE) { @batch.progress == 1 && !@batch.busy? }
    runner.kill.join

    assert_predicate @batch.run([3], key: :odd?, timeout: PATIENCE / 2) { |item| item }, :success?
    assert_empty tried
  end

  def test_who_leaves_a_run_withdraws_it
    gate = Thread::Queue.new
    seen = Thread::Queue.new
    batch(threads: 1)
    caller = Thread.new do
      @batch.run(1..10) do |item|
        seen << item
        gate.pop
      end
    end
    seen.pop
    caller.kill.join
    gate << :go

    assert @batch.wait(PATIENCE)
    assert_empty seen
  end

  def test_its_own_threads_cannot_wait_for_it
    ways = [-> { @batch.run([1]) { nil } }, -> { @batch.wait }, -> { @batch.stop }]
    errors = batch(threads: 1).run(ways, &:call).failed.map(&:error)

    assert_equal [ThreadError] * 3, errors.map(&:class)
    assert_equal [2], @batch.run([1]) { 2 }.values # nothing has come of it
  end

  def test_its_own_threads_may_push_as_long_as_there_is_room
    seen = Thread::Queue.new
    result = batch(threads: 1, capacity: 2).run([1]) do
      2.times { |item| @batch.push(item) { seen << item } }
    end

    assert_equal([Batch::Full], result.failed.map { |one| one.error.class })
    assert @batch.wait(PATIENCE)
    assert_equal 1, seen.size
  end

  def test_what_it_is_not_made_of
    [{ threads: 0 }, { threads: "5" }, { attempts: 0 }, { attempts: "3" }, { capacity: 0 }, { retry_on: "x" },
     { retry_on: [IOError, nil] }, { dead_letter: 5 }, { grace: "5" }].each do |wrong|
      error = assert_raises(ArgumentError) { Batch.new(threads: 1, **wrong) }
      assert_match(/\A#{wrong.keys.first}: must be /, error.message)
    end
    [1, (2..1), (-1..1), ("a".."b")].each { |no| assert_raises(ArgumentError) { Batch.new(threads: 1, backoff: no) } }
    assert_raises(ArgumentError) { batch.run([1]) }
    assert_raises(ArgumentError) { batch.run(nil) { 1 } }
    assert_raises(ArgumentError) { batch.run([1], key: 5) { 1 } }
    assert_raises(ArgumentError) { batch.push(1) }
  end
end
