# frozen_string_literal: true

require "test_helper"
require "pando/cluster"
require "pando/cluster/reactor/supervisor"
require "support/c_program"
require "support/waiting"

class ReactorDiskWaitTest < Minitest::Test
  include Support::Waiting

  def test_a_process_that_cannot_be_interrupted
    IO.popen([Support::CProgram.path("disk_wait", [], sanitizers: [])], "w") do |waiting|
      wait_until { Pando::Cluster::Reactor::Supervisor.waits_for_disk?(waiting.pid) }
    end
  end

  def test_any_other
    refute Pando::Cluster::Reactor::Supervisor.waits_for_disk?(Process.pid)
    refute Pando::Cluster::Reactor::Supervisor.waits_for_disk?(2**30)
  end
end
