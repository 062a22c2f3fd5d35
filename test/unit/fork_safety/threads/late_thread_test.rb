# frozen_string_literal: true

require "test_helper"
require_relative "thread_case"

# Background threads that do not stop in time for a fork.
class LateThreadTest < Minitest::Test
  include ThreadCase

  def test_one_that_is_late_refuses_the_fork_and_goes_on
    error, went_on, forked = in_child do
      release = Thread::Queue.new
      begun = Thread::Queue.new
      rounds = 0
      thread = Safety.thread("slow", within: 0.05) do |me|
        rounds += 1
        begun << true
        release.pop
        me.wait(60) until me.stopping?
      end
      begun.pop
      error = begin
        fork { leave }
      rescue Safety::ThreadNotStopped => e
        "#{e.class} #{e.message}"
      end
      went_on = thread.alive?
      release.push(true).push(true)
      [error, went_on, in_fork { leave(begun.size) }.positive? && begun.pop && [rounds, thread.alive?]]
    end

    assert_match(/\APando::ForkSafety::ThreadNotStopped the background thread slow \(.*:\d+\) did not end within 0\.05/,
                 error)
    assert went_on
    assert_equal [2, true], forked
  end

  # It notices the stop, and returns when that has been called off: this is no end of its own.
  def test_one_that_ends_too_late_is_started_again
    result = in_child do
      begun = Thread::Queue.new
      release = Thread::Queue.new
      thread = Safety.thread("late", within: 0.05) do |me|
        begun << true
        me.wait(60) until me.stopping?
        release.pop
      end
      begun.pop
      error = error_of { fork { leave } }
      release << true
      [error, begun.pop, thread.alive?]
    end

    assert_equal ["Pando::ForkSafety::ThreadNotStopped", true, true], result
  end

  def test_one_that_is_late_may_be_killed
    result = in_child do
      cleaned = Thread::Queue.new
      begun = Thread::Queue.new
      thread = Safety.thread("stuck", within: 0.05, late: :kill) do
        begun << true
        Thread::Queue.new.pop
      ensure
        cleaned << true
      end
      begun.pop
      reader, writer = IO.pipe
      in_fork { writer.syswrite("#{begun.pop && thread.alive?}\n") }
      [cleaned.pop, reader.gets, begun.pop, thread.alive?]
    end

    assert_equal [true, "true\n", true, true], result
  end

  def test_one_that_is_late_may_be_let_be
    result = in_child do
      begun = Thread::Queue.new
      release = Thread::Queue.new
      thread = Safety.thread("stubborn", within: 0.05, late: :allow) do |me|
        begun << Process.pid
        release.pop
        me.wait(60) until me.stopping?
      end
      begun.pop
      reader, writer = IO.pipe
      in_fork { writer.syswrite("#{begun.pop == Process.pid} #{thread.alive?}\n") }
      [reader.gets, thread.alive?, begun.size]
    end

    assert_equal ["true true\n", true, 0], result
  end
end
