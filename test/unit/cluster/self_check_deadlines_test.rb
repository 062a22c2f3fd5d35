# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require_relative "support/deadlines_case"

# The time that a step of the self-check may take.
class ClusterSelfCheckDeadlinesTest < Minitest::Test
  include ClusterSupport::DeadlinesCase

  def test_a_step_of_the_self_check_has_its_time
    worker = child(:worker, state: :adopted)
    worker.enter_step("loader", now + 2)
    assert_in_delta now + 0.25, @deadlines.due, 0.1
    enforce_for(1.5)
    worker.enter_step("thread", now + 2)
    enforce_for(1.5)
    assert_empty @observer.calls
    enforce_for(5)

    assert_equal [[:step_overdue, worker]], @observer.calls, "told once"
    assert_predicate worker, :standing_still?
  end

  # A GC that copies many pages, on a busy machine.
  def test_a_step_that_works_has_more_time
    worker = child(:worker, state: :adopted)
    worker.enter_step("gc", now + 2)
    working { enforce_for(20) }
    assert_empty @observer.calls
    enforce_for(4)

    assert_equal [[:step_overdue, worker]], @observer.calls
  end

  # There are ten for each process that is forked, and the monitor turns at each of them.
  def test_a_quick_step_costs_no_look_at_the_process
    worker = child(:worker, state: :adopted)
    reads = 0
    Pando::Sys::Scheduler.stub(:effort, ->(_) { (reads += 1).to_f }) do
      Pando::Sys::Scheduler.stub(:waits_for_disk?, ->(_) { reads += 1 }) do
        10.times do |number|
          worker.enter_step("step #{number}", now + 2)
          2.times { elapse(0.01) && @deadlines.enforce }
        end
      end
    end

    assert_equal 0, reads
  end

  def test_a_step_that_waits_for_a_disk_has_more_time
    worker = child(:worker, state: :adopted)
    worker.enter_step("loader", now + 2)
    Pando::Sys::Scheduler.stub(:waits_for_disk?, true) { enforce_for(20) }

    assert_empty @observer.calls
  end

  # As if it waited for a lock in a loop. The mold may be at fault, so it must be examined and counted as stuck.
  def test_a_step_that_works_until_the_end_of_its_start_is_overdue
    worker = child(:worker, state: :adopted)
    worker.enter_step("loader", now + 2)
    worker.deadline = now + 10
    working { enforce_for(9) }
    assert_empty @observer.calls
    working { enforce_for(9) }

    assert_equal [[:step_overdue, worker]], @observer.calls
    assert_predicate worker, :standing_still?
    assert_nil worker.verdict, "it is being examined"
    enforce_for(10)

    assert_includes worker.verdict, "it was not ready in time"
  end

  def test_who_is_through_with_its_self_check_has_no_step
    worker = child(:worker, state: :adopted)
    worker.enter_step("loader", now + 2)
    worker.enter_step("", now + 2)
    enforce_for(5)

    assert_empty @observer.calls
    refute_predicate worker, :standing_still?
  end

  private

  def working(&block)
    @began ||= now
    Pando::Sys::Scheduler.stub(:effort, ->(_) { (now - @began) * 0.6 }, &block)
  end
end
