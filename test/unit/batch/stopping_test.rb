# frozen_string_literal: true

require "test_helper"
require "pando/batch"
require_relative "support/batches"
require_relative "../sys/support/in_child"

# Quiet, stop, start, and what a fork or the end of the process makes of it.
class BatchStoppingTest < Minitest::Test
  include SysSupport::InChild
  include BatchSupport

  def test_quiet_takes_nothing_new_and_ends_what_is_open
    gate = Thread::Queue.new
    batch(threads: 1) { gate.pop }
    2.times { |item| @batch << item }
    2.times { @batch.quiet }

    assert_predicate @batch, :busy?
    assert_raises(Batch::Closed) { @batch << 3 }
    assert_raises(Batch::Closed) { @batch.run([3]) }
    2.times { gate << :go }
    assert @batch.wait(PATIENCE)
    assert_equal [2, false], [@batch.done, @batch.busy?]
    @batch.start << 3
    gate << :go
    assert @batch.wait(PATIENCE)
  end

  def test_threads_that_wait_for_work_are_not_busy
    batch.start

    refute_predicate @batch, :busy?
    assert_equal 0, wait_until(timeout: PATIENCE) { @batch.in_progress.zero? && 0 }
  end

  def test_an_item_that_waits_for_its_next_attempt_is_open_but_not_busy
    batch(attempts: 2, backoff: ->(_) { PATIENCE }) { raise "later" }
    2.times { |item| @batch.push(item, key: :same) }
    wait_until(timeout: PATIENCE) { @batch.progress == 1 && !@batch.busy? }

    refute @batch.wait(0.001)
    assert_equal [0, 1], @batch.stop
    assert_equal 1, @batch.progress
  end

  def test_a_stop_gives_back_what_is_not_done_and_leaves_no_thread
    before = Thread.list
    began = Thread::Queue.new
    batch(threads: 2, attempts: 5, backoff: 30..30) do |item|
      began << item
      raise "later" if item == :later

      sleep
    end
    %i[later one two three].each { |item| @batch << item }
    3.times { began.pop }

    assert_equal %i[later one two three], @batch.stop(within: 0.01)
    assert_empty own_threads(before)
    assert_equal [], @batch.stop
    refute_predicate @batch, :busy?
    assert @batch.wait(0)
  end

  def test_a_stop_lets_what_is_being_done_come_to_its_end
    began = Thread::Queue.new
    gate = Thread::Queue.new
    batch(threads: 1) do
      began << true
      gate.pop
    end
    2.times { |item| @batch << item }
    began.pop
    stopped = Thread.new { @batch.stop(within: PATIENCE) }
    wait_until(timeout: PATIENCE) { stopped.stop? }
    gate << :go

    assert_equal [1], stopped.value
    assert_equal 1, @batch.done
  end

  def test_whoever_waits_is_told_of_the_stop
    began = Thread::Queue.new
    batch(threads: 1, capacity: 1)
    runner = Thread.new { @batch.run([1, 2, 3]) { began << sleep } }
    idler = Thread.new { @batch.wait }
    wait_until(timeout: PATIENCE) { @batch.in_progress == 1 && runner.stop? && idler.stop? }
    pusher = Thread.new { @batch.push(4) { nil } }
    pusher.report_on_exception = false
    wait_until(timeout: PATIENCE) { pusher.stop? }
    @batch.stop(within: 0)

    assert_equal [1, 2, 3], runner.value.unfinished
    assert_raises(Batch::Closed) { pusher.value }
    idler.join(PATIENCE) || flunk("it waits on")
  end

  def test_after_a_stop_it_may_be_started_again
    assert_predicate batch.run([1]) { |item| item }, :success?
    @batch.stop
    assert_raises(Batch::Closed) { @batch.run([2]) { |item| item } }
    assert_predicate @batch.start.run([2]) { |item| item }, :success?
    assert_equal 2, @batch.done
  end

  def test_a_forked_child_has_threads_of_its_own_and_nothing_of_its_parents
    gate = Thread::Queue.new
    batch(threads: 2) { |item| gate.pop == :go && item }
    3.times { |item| @batch << item }
    theirs = in_child do
      free = [@batch.busy?, @batch.in_progress, @batch.stop]
      result = @batch.start.run(1..3) { |item| item }
      [*free, result.done, @batch.stop, Thread.list.size]
    end

    assert_equal [false, 0, [], [1, 2, 3], [], 1], theirs
    3.times { gate << :go }
    assert @batch.wait(PATIENCE)
    assert_equal 3, @batch.done
  end

  # Ruby kills the threads of a process that ends, and waits until there are none.
  ENDING = <<~RUBY
    began = Thread::Queue.new
    batch = Pando::Batch.new(threads: 3, attempts: 2, backoff: 60..60) do |item|
      raise "later" if item.zero?

      began << item
      sleep
    end
    5.times { |item| batch << item }
    3.times { began.pop }
    puts "ends"
  RUBY

  def test_a_process_may_end_in_the_middle_of_it
    output, line = IO.pipe
    pid = spawn(Gem.ruby, "-I", File.expand_path("../../../lib", __dir__), "-rpando/batch", "-e", ENDING,
                out: line, err: File::NULL)
    line.close
    said = Thread.new { output.read }

    assert said.join(PATIENCE), "it hangs"
    assert_equal "ends\n", said.value
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end
end
