# frozen_string_literal: true

require "test_helper"
require "pando/sys/scheduler"

class SysSchedulerTest < Minitest::Test
  def test_run_delay_of_this_process
    skip "this kernel keeps no account" unless File.exist?("/proc/self/schedstat")

    first = Pando::Sys::Scheduler.run_delay(Process.pid)
    assert_operator(first, :>=, 0)
    assert_operator(Pando::Sys::Scheduler.run_delay(Process.pid), :>=, first)
  end

  def test_nobody = assert_nil(Pando::Sys::Scheduler.run_delay((2**22) + 1))
end
