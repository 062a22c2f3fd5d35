# frozen_string_literal: true

require "test_helper"
require "pando/sys/process_stat"
require "support/waiting"

class SysProcessStatTest < Minitest::Test
  include Support::Waiting

  # Each field is its own number in proc_pid_stat(5), except for the state.
  FIELDS = [1, "(a) b) 7 (c)", "S", *4..52].join(" ")

  def test_each_field_is_where_the_manual_says
    stat = Pando::Sys::ProcessStat.new("#{FIELDS}\n")
    tick = 1.0 / Etc.sysconf(Etc::SC_CLK_TCK)

    assert_equal ["S", 4, 5, 8, 10, "19", 22, "level 40, policy 41"],
                 [stat.state, stat.parent, stat.group, stat.foreground_group, stat.minor_faults, stat.nice,
                  stat.started, stat.scheduling]
    assert_in_delta 29 * tick, stat.cpu_time
    assert_in_delta 62 * tick, stat.tree_cpu_time
  end

  def test_this_process
    stat = Pando::Sys::ProcessStat.read("self")

    assert_equal ["R", Process.ppid, Process.getpgrp], [stat.state, stat.parent, stat.group]
    assert_equal Process.getpriority(Process::PRIO_PROCESS, 0).to_s, stat.nice
    assert_operator stat.minor_faults, :>, 0
  end

  def test_a_child_that_has_ended_counts_once_it_was_waited_for
    before = Pando::Sys::ProcessStat.read(Process.pid).tree_cpu_time
    pid = fork do
      Thread.pass until Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) > 0.1
      exit!(0)
    end
    wait_until { Pando::Sys::ProcessStat.read(pid).state == "Z" }
    Process.wait(pid)

    assert_operator Pando::Sys::ProcessStat.read(Process.pid).tree_cpu_time, :>=, before + 0.05
    assert_nil Pando::Sys::ProcessStat.read(pid)
  end
end
