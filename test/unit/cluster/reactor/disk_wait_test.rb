# frozen_string_literal: true

require "test_helper"
require "pando/cluster/reactor/disk_wait"
require "support/c_program"
require "support/waiting"

class ReactorDiskWaitTest < Minitest::Test
  include Support::Waiting

  DiskWait = Pando::Cluster::Reactor::DiskWait

  def test_a_process_that_cannot_be_interrupted
    IO.popen([Support::CProgram.path("disk_wait", [], sanitizers: [])], "w") do |waiting|
      wait_until { DiskWait.of?(waiting.pid) }
    end
  end

  def test_any_other
    refute DiskWait.of?(Process.pid)
    refute DiskWait.of?(2**30)
  end
end
