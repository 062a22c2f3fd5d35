# frozen_string_literal: true

require "test_helper"
require "pando/sys/scheduler"
require "support/c_program"
require "support/waiting"

class SysSchedulerTest < Minitest::Test
  include Support::Waiting

  def test_a_process_that_cannot_be_interrupted
    IO.popen([Support::CProgram.path("disk_wait", [], sanitizers: [])], "w") do |waiting|
      wait_until { Pando::Sys::Scheduler.waits_for_disk?(waiting.pid) }
    end
  end

  def test_any_other
    refute Pando::Sys::Scheduler.waits_for_disk?(Process.pid)
    refute Pando::Sys::Scheduler.waits_for_disk?(2**30)
  end

  def test_run_delay_of_this_process
    skip "this kernel keeps no account" unless File.exist?("/proc/self/schedstat")

    effort = Pando::Sys::Scheduler.effort(Process.pid)
    wait_until { Pando::Sys::Scheduler.effort(Process.pid) > effort }
    first = Pando::Sys::Scheduler.run_delay(Process.pid)
    assert_operator(first, :>=, 0)
    assert_operator(Pando::Sys::Scheduler.run_delay(Process.pid), :>=, first)
  end

  def test_nobody
    assert_nil Pando::Sys::Scheduler.run_delay((2**22) + 1)
    assert_nil Pando::Sys::Scheduler.effort((2**22) + 1)
  end
end
