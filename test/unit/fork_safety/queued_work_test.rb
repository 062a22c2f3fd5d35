# frozen_string_literal: true

require "test_helper"
require "pando/fork_safety/queued_work"

# Work that libraries of the table have queued inside this process. The rows are the test's.
class ForkSafetyQueuedWorkTest < Minitest::Test
  QueuedWork = Pando::ForkSafety::QueuedWork
  Known = Pando::ForkSafety::Libraries::Known
  Library = Pando::ForkSafety::Libraries::Library

  def setup
    @loaded = Known.method(:loaded)
    rows = @rows = []
    redefine { rows }
    @told = []
  end

  def teardown
    redefine(&@loaded)
  end

  # Warnings are errors, and a redefinition is one.
  def redefine(&block)
    Known.singleton_class.class_exec do
      remove_method(:loaded) if method_defined?(:loaded, false)
      define_method(:loaded, &block)
    end
  end

  def row(name, &declaration) = @rows << Library.new(name, "Object", &declaration)
  def on_failure = ->(*failure) { @told << failure }
  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  def finish(within) = QueuedWork.finish(now + within, on_failure).map(&:to_a)

  def test_nothing_is_queued
    row("fine") { fine note: "." }

    refute_predicate QueuedWork, :pending?
    assert_empty finish(10)
  end

  def test_what_is_queued_is_waited_for
    left = %w[a b c]
    row("queue") { queues count: ->(_by) { left.size }, names: -> { left } }
    looks = 0
    assert_predicate QueuedWork, :pending?
    QueuedWork.wait(now + 30) { (looks += 1) && left.pop }

    assert_operator looks, :>, 3
    assert_empty finish(0)
  end

  # A timer of the library may have begun it after the last look.
  def test_work_that_is_done_while_there_is_time_is_not_dropped
    names = [["a task (running)"]]
    row("queue") { queues count: ->(_by) { 0 }, names: -> { names.shift || [] } }

    assert_empty finish(30)
  end

  # It passes from a timer to an executor, for instance.
  def test_work_that_is_nowhere_for_a_moment_is_not_over
    seen = [1, 0, 0, 1]
    row("queue") { queues count: ->(_by) { seen.shift || 0 }, names: -> { [] } }
    QueuedWork.wait(now + 30)

    assert_empty seen
  end

  def test_what_is_left_is_counted_and_named
    row("queue") { queues count: ->(_by) { 3 }, names: -> { %w[Job Other Job] } }
    row("another") { queues count: ->(_by) { 0 }, names: -> { (1..9).map(&:to_s) } }
    began = now
    dropped = finish(0.1)

    assert_operator now - began, :>=, 0.1
    assert_equal [["queue", 3, ["2 Job", "Other"]], ["another", 9, %w[1 2 3 4 5] + ["4 other kinds"]]], dropped
  end

  def test_what_is_due_too_late_is_not_waited_for
    at = now + 1000
    row("timer") { queues count: ->(by) { by < at ? 0 : 1 }, names: -> { ["later"] } }

    assert_equal [["timer", 1, ["later"]]], finish(100)
  end

  def test_a_buffer_is_flushed_with_the_time_that_is_left
    given = nil
    row("buffer") { flush { |seconds| given = seconds } }

    assert_empty finish(60)
    assert_includes 1.0..60.0, given
  end

  def test_a_flush_that_does_not_end
    row("buffer") { flush { |_| sleep } }
    row("next") { flush { |_| nil } }

    assert_equal [["buffer", 1, ["a flush that did not end"]]], finish(0.05)
  end

  def test_a_row_that_fails_holds_nobody_up
    row("broken") do
      queues count: ->(_by) { raise "a new version" }, names: -> { raise "a new version" }
      flush { |_| raise "no server" }
    end

    assert_empty finish(60)
    assert_equal([["broken", "a new version"], ["broken", "no server"], ["broken", "a new version"]],
                 @told.map { |name, error| [name, error.message] })
  end
end
