# frozen_string_literal: true

require "test_helper"
require "pando/sys"
require_relative "support/in_child"

class SysPidfdTest < Minitest::Test
  include SysSupport::InChild

  Sys = Pando::Sys
  Pidfd = Pando::Sys::Pidfd

  # A child that lives until it is killed.
  def sleeper(&before)
    fork do
      before&.call
      sleep(PATIENCE)
    end
  end

  # Waits through a poller, as the monitor does. A signal interrupts a wait.
  def ended(pidfd)
    poller = Sys::Poller.new.add(pidfd, :ended)
    deadline = Sys.now + PATIENCE
    found = poller.wait(PATIENCE) until found&.any? || Sys.now > deadline
    assert_equal [:ended], found
    pidfd.reap
  ensure
    poller&.close
  end

  def test_a_living_child
    pidfd = Pidfd.of_child(pid = sleeper)

    assert_equal pid, pidfd.pid
    assert_nil pidfd.reap
    assert_empty Sys::Poller.new.add(pidfd, :ended).wait(0)
    assert pidfd.signal("KILL")
  ensure
    ended(pidfd)
    pidfd.close
  end

  def test_how_a_child_ended
    exited = ended(Pidfd.of_child(fork { leave(3) }))
    well = ended(Pidfd.of_child(fork { leave(0) }))

    assert_equal [:exited, 3, "status 3"], [exited.kind, exited.number, exited.to_s]
    assert_predicate well, :success?
    refute_predicate exited, :success?
    refute_predicate exited, :killed?
  end

  def test_how_a_child_was_killed
    pidfd = Pidfd.of_child(sleeper)
    pidfd.signal("KILL")
    killed = ended(pidfd)

    assert_equal [:killed, 9, "signal KILL"], [killed.kind, killed.number, killed.to_s]
    assert_predicate killed, :killed?
    refute_predicate killed, :success?
  end

  def test_a_signal_that_core_dumps_is_a_killing_too
    pidfd = Pidfd.of_child(sleeper { Process.setrlimit(:CORE, 0) })
    pidfd.signal("XCPU")
    ending = ended(pidfd)

    assert_equal "signal XCPU", ending.to_s
    assert_predicate ending, :killed?
  end

  def test_after_reaping_there_is_nobody_to_signal
    pidfd = Pidfd.of_child(fork { leave })
    ended(pidfd)

    refute pidfd.signal("TERM")
  end

  def test_a_child_that_another_waited_for_has_ended_all_the_same
    pidfd = Pidfd.of_child(pid = fork { leave })
    Process.wait(pid)

    assert_equal "status unknown", pidfd.reap.to_s
    refute_predicate pidfd.reap, :success?
  end

  def test_only_children_are_children
    assert_raises(Errno::ECHILD) { Pidfd.of_child(Process.ppid) }
    pid = fork { leave }
    Process.wait(pid)
    assert_raises(Errno::ESRCH) { Pidfd.of_child(pid) }
    assert_raises(Errno::EINVAL) { Pidfd.of_child(0) }
    assert_raises(Errno::EINVAL) { Pidfd.of_child(-1) }
  end

  def test_who_is_refused_costs_no_descriptor
    before, after = in_child do
      parent = Process.ppid
      before = open_descriptors
      20.times { error_of { Pidfd.of_child(parent) } }
      [before, open_descriptors]
    end

    assert_equal before, after
  end

  def test_an_unknown_signal
    pidfd = Pidfd.of_child(sleeper)
    assert_raises(KeyError) { pidfd.signal("NONSENSE") }
  ensure
    pidfd.signal("KILL")
    ended(pidfd)
  end

  def test_a_pidfd_is_not_inherited_by_programs
    fd = Sys.pidfd_open(Process.pid)

    assert_predicate IO.for_fd(fd), :close_on_exec?
  end
end
