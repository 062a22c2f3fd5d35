# frozen_string_literal: true

require "test_helper"
require "pando/swarm/runners/bunny/threads"

class BunnyThreadTrackerTest < Minitest::Test
  def setup
    @tracker = Pando::Swarm::Runners::Bunny::ThreadTracker.new
  end

  def teardown
    @tracker.kill_all(10)
  end

  def test_threads_of_tracked_threads_are_tracked
    inner = Queue.new
    outer = @tracker.start("outer") do
      inner << Thread.new { Thread.new { sleep }.tap { |one| inner << one }.join }
      sleep
    end
    threads = [outer, inner.pop, inner.pop]

    assert_equal "outer", outer.name
    assert_equal threads.map(&:object_id).sort, @tracker.threads.map(&:object_id).sort
    assert @tracker.kill_all(10)
    assert(threads.none?(&:alive?))
    assert_empty @tracker.threads
  end

  def test_other_threads_are_left_alone
    other = Thread.new { sleep }
    @tracker.start("one") { sleep }
    @tracker.kill_all(10)

    assert_predicate other, :alive?
  ensure
    other.kill.join
  end

  def test_a_thread_that_dies_of_an_error_is_gone
    thread = @tracker.start("faulty") { (Thread.current.report_on_exception = false) || raise("no") }
    wait_until { !thread.alive? }

    assert @tracker.kill_all(10)
  end

  def test_a_thread_that_does_not_end_is_reported
    held = Mutex.new
    begun = Queue.new
    stubborn = @tracker.start("stubborn") do
      Thread.handle_interrupt(Object => :never) do
        begun << true
        held.synchronize { nil }
      end
    end
    held.synchronize do
      begun.pop
      refute @tracker.kill_all(0.05)
    end
    wait_until { !stubborn.alive? }
  end
end
