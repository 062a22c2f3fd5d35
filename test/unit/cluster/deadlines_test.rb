# frozen_string_literal: true

require "test_helper"
require_relative "support/deadlines_case"

class ClusterDeadlinesTest < Minitest::Test
  include ClusterSupport::DeadlinesCase

  def signals(child) = child.pidfd.signals

  def test_it_looks_again_soon_for_requests_begin_without_a_word
    assert_in_delta now + Deadlines::TICK, @deadlines.due, 0.1
  end

  def test_it_looks_again_when_the_next_deadline_comes
    waiting = child
    waiting.deadline = now + 0.1

    assert_in_delta waiting.deadline, @deadlines.due
    at_work = child
    at_work.row.start_job("GET", "/", 0.05, 50)

    assert_in_delta [waiting.deadline, at_work.row.soft_deadline].min, @deadlines.due
  end

  def test_time_in_which_nobody_could_do_anything_is_no_timeout_of_a_request
    worker = child
    worker.row.start_job("GET", "/", 5, 10)
    elapse(40)
    @deadlines.postpone(40)
    @deadlines.enforce
    assert_empty signals(worker)
    assert_operator @deadlines.due, :>, now
    enforce_for(6)
    assert_equal ["URG"], signals(worker)
    assert_empty @observer.calls
    enforce_for(5)

    assert_equal [[:hard_timeout, worker, 0]], @observer.calls.uniq
  end

  def test_nor_of_one_that_begins_later
    elapse(40)
    @deadlines.postpone(40)
    worker = child
    elapse(1)
    worker.row.start_job("GET", "/", 5, 10)
    enforce_for(11)

    assert_includes @observer.calls, [:hard_timeout, worker, 0]
  end

  def test_nor_of_a_start
    starting = child(state: :adopted)
    starting.deadline = now + 10
    elapse(40)
    @deadlines.postpone(40)
    @deadlines.enforce
    assert_empty signals(starting)
    enforce_for(11)

    assert_equal ["KILL"], signals(starting)
  end

  def test_the_soft_deadline_is_signalled_once
    worker = child
    worker.row.start_job("GET", "/", 10, 20)
    enforce_for(9)
    assert_empty signals(worker)
    enforce_for(5)

    assert_equal ["URG"], signals(worker)
    assert_empty @observer.calls
    assert_operator @deadlines.due, :>, now, "no reason to wake up at once"
  end

  def test_each_request_has_its_own
    worker = child
    2.times do
      worker.row.start_job("GET", "/", 1, nil)
      enforce_for(5)
      worker.row.finish_job
      worker.row.beat
    end

    assert_equal %w[URG URG], signals(worker)
  end

  def test_a_deadline_that_was_moved_counts_anew
    worker = child
    worker.row.start_job("GET", "/", 1, 100)
    enforce_for(3)
    ClusterSupport::Clock.offset = 0.0 # the row knows the real time only
    worker.row.set_deadlines(2, 100)
    enforce_for(1)
    assert_equal %w[URG], signals(worker)
    enforce_for(2)

    assert_equal %w[URG URG], signals(worker)
  end

  def test_the_hard_deadline_is_told
    worker = child
    worker.row.start_job("GET", "/", 1, 2)
    elapse(3)
    @deadlines.enforce

    assert_equal [[:hard_timeout, worker, 0]], @observer.calls
  end

  def test_each_of_several_jobs_has_deadlines_of_its_own
    worker = child
    worker.row.start_job("GET", "/first", 2, 9, 1)
    worker.row.start_job("GET", "/second", 4, 6, 2)
    elapse(3)
    2.times { @deadlines.enforce }
    assert_equal ["URG"], signals(worker)
    elapse(2)
    2.times { @deadlines.enforce }
    assert_equal %w[URG URG], signals(worker)
    assert_operator @deadlines.due - now, :<=, 1.01
    elapse(1.5)
    @deadlines.enforce

    assert_equal [[:hard_timeout, worker, 2]], @observer.calls
  end

  def test_a_worker_that_was_killed_is_left_alone_until_it_is_gone
    worker = child
    worker.row.start_job("GET", "/", 1, 2)
    worker.kill("hard timeout")
    enforce_for(40)

    assert_equal ["KILL"], signals(worker)
    assert_empty @observer.calls
    assert_in_delta now + Deadlines::TICK, @deadlines.due, 0.1
  end

  def test_a_request_without_deadlines_may_last
    worker = child
    worker.row.start_job("GET", "/", nil, nil)
    enforce_for(300)

    assert_empty signals(worker)
    assert_empty @observer.calls
  end

  def test_the_deadlines_of_a_leaving_child_hold_too
    worker = child
    worker.leave("replaced", now + 100, patient: true)
    worker.row.start_job("GET", "/", 1, 2)
    elapse(1.5)
    @deadlines.enforce
    assert_equal ["URG"], signals(worker)
    elapse(1)
    @deadlines.enforce

    assert_equal [[:hard_timeout, worker, 0]], @observer.calls
  end

  def test_only_workers_have_jobs
    %i[mold service].each { |role| child(role).row.start_job("GET", "/", 0, 0) }
    child(state: :ordered).row.start_job("GET", "/", 0, 0) # a row of its predecessor
    enforce_for(1)

    assert_empty @observer.calls
  end

  def test_an_idle_worker_that_gives_no_sign_of_life
    worker = child
    enforce_for(14) { worker.row.beat if ClusterSupport::Clock.offset < 0.6 }
    assert_empty signals(worker)
    enforce_for(2)

    assert_includes signals(worker), "KILL"
    assert_match(/\Ait stood still for 1\d s\z/, worker.reason)
    enforce_for(10)
    assert_equal ["KILL"], signals(worker)
  end

  def test_who_works_boots_or_leaves_does_not_stand_still
    busy = child
    busy.row.start_job("GET", "/", nil, nil)
    children = [busy, child(state: :adopted), child(:mold), child(:service), child.tap { |c| c.leave("x", now + 999) }]
    enforce_for(30)

    assert_empty(children.flat_map { |one| signals(one) })
  end

  def test_a_worker_that_waits_for_a_slow_head_in_direct_mode
    @deadlines = Deadlines.new(@roster, @observer, ClusterSupport.options(longest_wait: 60.0))
    worker = child
    enforce_for(Deadlines::STANDSTILL + 59)
    assert_empty signals(worker)
    enforce_for(2)

    assert_equal ["KILL"], signals(worker)
  end

  # Where their threads stand is to be known, and nobody else knows it.
  def test_a_node_is_told_to_show_where_it_stands_before_it_is_killed
    @deadlines = Deadlines.new(@roster, @observer, ClusterSupport.options(longest_wait: 0.0, jobs: true))
    still = child
    booting = child(state: :adopted).tap { |one| one.deadline = now + 1 }
    leaving = child.tap { |one| one.leave("replaced", now + 1) }
    elapse(2)
    2.times { @deadlines.enforce }
    assert_equal([[], ["URG"], ["URG"]], [still, booting, leaving].map { |one| signals(one) })
    enforce_for(30)

    assert_equal([%w[URG KILL]] * 3, [still, booting, leaving].map { |one| signals(one) })
    assert_equal "replaced", leaving.reason
    assert_equal "it did not leave in time", leaving.verdict
  end

  def test_who_was_stopped_together_with_us_gets_time_to_stir
    worker = child
    elapse(3600)
    @deadlines.enforce
    elapse(0.25)
    @deadlines.enforce
    assert_empty signals(worker)
    enforce_for(Deadlines::STANDSTILL + 1)

    assert_equal ["KILL"], signals(worker)
  end

  def test_an_order_that_is_not_carried_out
    ordered = child(state: :ordered)
    ordered.deadline = now + 20
    enforce_for(19)
    assert_empty @observer.calls
    enforce_for(5)

    assert_equal [[:spawn_overdue, ordered]], @observer.calls
  end

  def test_who_does_not_become_ready_is_killed
    options = ClusterSupport.options(longest_wait: 0.0, boot_timeout: 90.0, spawn_timeout: 2.5)
    @deadlines = Deadlines.new(@roster, @observer, options)
    { worker: "spawn_timeout 2.5 s", mold: "boot_timeout 90 s", service: "spawn_timeout 2.5 s" }.each do |role, setting|
      booting = child(role, state: :adopted)
      booting.deadline = now + 20
      enforce_for(25)

      assert_equal ["KILL"], signals(booting)
      assert_equal "it was not ready in time (#{setting})", booting.reason
    end
  end

  def test_who_does_not_leave_is_killed
    worker = child
    worker.leave("scaled down", now + 5)
    enforce_for(4)
    assert_empty signals(worker)
    enforce_for(5)

    assert_equal ["KILL"], signals(worker)
    assert_equal "it did not leave in time", worker.verdict
  end

  def test_who_leaves_patiently_may_end_its_request_first
    worker = child
    worker.row.start_job("GET", "/", nil, nil)
    worker.leave("replaced", now + 5, patient: true)
    enforce_for(60)
    assert_empty signals(worker)
    assert_operator @deadlines.due, :>, now
    worker.row.finish_job
    enforce_for(9)
    assert_empty signals(worker)
    enforce_for(2)

    assert_equal ["KILL"], signals(worker)
  end

  # A request that ends early does not shorten the time that its worker has.
  def test_a_worker_that_leaves_last_has_all_of_its_time
    worker = child
    worker.row.start_job("GET", "/", nil, nil)
    worker.ask_to_leave_last("replaced", 60.0, 5.0)
    enforce_for(2)
    worker.row.finish_job
    enforce_for(60)
    assert_empty signals(worker)
    enforce_for(5)

    assert_equal ["KILL"], signals(worker)
  end

  def test_a_stream_is_waited_for_until_the_deadline
    worker = child
    worker.row.start_job("GET", "/events", nil, nil)
    worker.row.streaming!
    worker.leave("replaced", now + 5, patient: true)
    enforce_for(4)
    assert_empty signals(worker)
    enforce_for(2)

    assert_equal ["KILL"], signals(worker)
  end

  def test_who_lives_on_without_its_link_is_killed
    worker = child
    worker.deadline = now + 5
    enforce_for(6) { worker.row.beat }

    assert_equal "its link ended", worker.verdict
  end

  def test_who_goes_while_we_look_is_passed_over
    first = child(state: :ordered)
    second = child
    [first, second].each { |one| one.deadline = now }
    roster = @roster
    @observer.define_singleton_method(:spawn_overdue) { |_| roster.dismiss(second) }
    elapse(1)
    @deadlines.enforce

    assert_empty second.pidfd.signals
  end

  def test_who_has_not_reported_is_searched_for_again_and_again
    born = child(state: :adopted)
    unborn = child(state: :ordered)
    [born, unborn].each { |one| one.expected_by = now + 1 }
    enforce_for(0.5)
    assert_empty @observer.calls
    enforce_for(2)

    assert_equal [[:report_overdue, unborn]] * 2, @observer.calls
  end
end
