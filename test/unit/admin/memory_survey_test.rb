# frozen_string_literal: true

require "test_helper"
require "pando/admin/memory_survey"

# Which process is measured when.
class AdminMemorySurveyTest < Minitest::Test
  # Tells which processes there are.
  Fake = Struct.new(:pids) do
    def snapshot(**) = self
    def processes = pids.map { |pid| ["worker", nil, pid] }
  end

  def setup
    @pids = Array.new(3) { spawn("sleep", "60") }
    @monitor = Fake.new([@pids.first])
    @survey = Pando::Admin::MemorySurvey.new(@monitor, self)
    @counts = Hash.new(0)
    @now = Pando::Sys.now
  end

  # An event tells of it.
  def change(pids)
    @monitor.pids = pids
    @survey.heard("worker.ready")
    @now = Pando::Sys.now + 2.01
  end

  def teardown
    Process.kill(:KILL, *@pids)
    @pids.each { |pid| Process.wait(pid) }
  end

  def step = @survey.step(@now)
  def measured = @pids.select { |pid| @survey[pid] }

  # Counts the measurements of each process, and makes them.
  def usage(pid)
    @counts[pid] += 1
    Pando::Sys::Memory.usage(pid)
  end

  def counting
    @counts.clear
    yield
    @counts
  end

  def test_a_new_process_is_measured_at_once
    step
    change(@pids)
    2.times { step }

    assert_equal(3, measured.size)
  end

  # The shares of the others have changed.
  def test_a_new_process_has_all_the_others_measured_anew
    step
    step
    change(@pids.first(2))

    assert_equal({ @pids[0] => 1, @pids[1] => 1 }, counting { 2.times { step } })
  end

  # Events may be missed.
  def test_it_looks_for_new_processes_now_and_then
    step
    @monitor.pids = @pids
    @now += 30.0
    step
    assert_equal(1, measured.size)
    @now += 30.1
    3.times { step }

    assert_equal(3, measured.size)
  end

  def test_it_looks_soon_if_asked_to
    step
    @monitor.pids = @pids
    @survey.look_soon
    @now += 0.6
    3.times { step }

    assert_equal(3, measured.size)
  end

  def test_without_a_change_it_takes_its_time
    @monitor.pids = @pids
    3.times { step }

    assert_empty(counting { 3.times { step } })
    assert_equal(1, counting { @now += 31.0 and step }.size)
  end

  def test_a_process_that_has_ended_does_not_keep_it_busy
    dead = spawn("true")
    Process.wait(dead)
    @monitor.pids = [dead, *@pids.first(2)]
    3.times { step }

    assert_equal(@pids.first(2), measured)
    assert_empty(counting { 3.times { step } })
  end

  def test_it_forgets_processes_that_are_gone
    @monitor.pids = @pids
    3.times { step }
    change(@pids.first(1))
    step

    assert_equal(@pids.first(1), measured)
  end
end
