# frozen_string_literal: true

require "test_helper"
require "pando/sys"
require_relative "support/in_child"

class SysProcessTest < Minitest::Test
  include SysSupport::InChild

  Sys = Pando::Sys

  # This process becomes the subreaper; its child is a forker that forks the block's process and ends at once.
  # @return [Integer] pid of the block's process, an orphan of the forker
  def orphan
    reader, writer = IO.pipe
    Process.wait(fork do
      writer.syswrite("#{fork { yield && leave }}\n")
      leave
    end)
    reader.gets.to_i
  end

  def how_it_ended(pid)
    status = Process.wait2(pid).last
    status.signaled? ? Signal.signame(status.termsig) : status.exitstatus
  end

  # It said that it would wait next, and does.
  def asleep(pid) = wait_until { File.read("/proc/#{pid}/stat")[/\) (.)/, 1] == "S" }

  def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def test_the_parent_is_asked_of_the_kernel
    assert_equal Process.ppid, Sys.parent_pid
    assert(in_child { Sys.parent_pid == Process.ppid })
  end

  def test_who_has_been_adopted_already_waits_for_nothing
    assert Sys.wait_adoption(Process.ppid, 0)
  end

  def test_a_sibling_is_adopted_every_time
    endings = in_child do
      Sys.subreaper!
      reaper = Process.pid
      Array.new(50) do
        leave(Sys.wait_adoption(reaper, PATIENCE) && Process.ppid == reaper ? 3 : 4) unless Sys.fork_sibling
        Process.wait2.last.exitstatus
      end
    end

    assert_equal [3] * 50, endings
  end

  def test_adoption_by_another_is_an_error
    error = in_child do
      Sys.subreaper!
      reader, writer = IO.pipe
      Process.wait(fork do
        forker = Process.pid # no subreaper
        next leave if Sys.fork_sibling

        writer.syswrite(error_of { Sys.wait_adoption(forker, PATIENCE) })
        leave
      end)
      reader.readpartial(100)
    end

    assert_equal "Errno::ESRCH", error
  end

  def test_who_is_no_sibling_is_not_adopted_later
    assert_equal("Errno::ESRCH", error_of { Sys.wait_adoption(Process.pid, PATIENCE) })
  end

  def test_who_dies_with_its_parent
    ending = in_child do
      Sys.subreaper!
      reader, writer = IO.pipe
      forker = fork do
        fork do
          trap("TERM", "IGNORE")
          Sys.die_with_parent!
          writer.syswrite("#{Process.pid}\n")
          sleep(PATIENCE)
        end
        sleep(PATIENCE)
      end
      child = reader.gets.to_i
      Process.kill(:KILL, forker)
      Process.wait(forker)
      how_it_ended(child)
    end

    assert_equal "KILL", ending
  end

  def test_who_outlives_its_parent_has_its_grace_and_no_more
    early, orphaned, ending, lived = in_child do
      Sys.subreaper!
      reader, writer = IO.pipe
      forker = fork do
        fork do
          %w[TERM INT ALRM].each { |name| trap(name, "IGNORE") }
          Sys.outlive_parent!(1.0)
          writer.syswrite("#{Process.pid}\n#{Sys.orphaned?}\n")
          wait_until(timeout: PATIENCE) { Sys.orphaned? }
          writer.syswrite("#{Sys.orphaned?}\n")
          loop { sleep }
        end
        sleep(PATIENCE)
      end
      child = reader.gets.to_i
      early = reader.gets.chomp
      Process.kill(:KILL, forker)
      died = clock
      Process.wait(forker)
      orphaned = reader.gets.chomp
      [early, orphaned, how_it_ended(child), clock - died]
    end

    assert_equal %w[false true KILL], [early, orphaned, ending]
    assert_operator lived, :>=, 0.99
  end

  def test_a_system_call_is_interrupted_when_the_parent_dies
    line = in_child do
      Sys.subreaper!
      reader, writer = IO.pipe
      forker = fork do
        fork do
          Sys.outlive_parent!(60)
          writer.syswrite("#{Process.pid}\n")
          Sys::Poller.new.wait(PATIENCE) until Sys.orphaned?
          writer.syswrite("awake\n")
          leave
        end
        sleep(PATIENCE)
      end
      child = reader.gets.to_i
      asleep(child)
      Process.kill(:KILL, forker)
      Process.wait(forker)
      line = reader.gets
      Process.wait(child)
      line
    end

    assert_equal "awake\n", line
  end

  def test_without_grace_the_end_comes_at_once
    ending = in_child do
      Sys.subreaper!
      reader, writer = IO.pipe
      forker = fork do
        fork do
          Sys.outlive_parent!(0)
          writer.syswrite("#{Process.pid}\n")
          loop { sleep }
        end
        sleep(PATIENCE)
      end
      child = reader.gets.to_i
      Process.kill(:KILL, forker)
      Process.wait(forker)
      how_it_ended(child)
    end

    assert_equal "KILL", ending
  end

  def test_an_ended_child_is_found_and_left_to_be_waited_for
    none, found, again, living, gone = in_child do
      none = Sys.ended_child
      pid = fork { leave(4) }
      found = wait_until { Sys.ended_child } == pid
      again = Sys.ended_child == pid
      Process.wait(pid)
      sleeper = fork { sleep }
      living = Sys.ended_child
      Process.kill(:KILL, sleeper)
      Process.wait(sleeper)
      [none, found, again, living, Sys.ended_child]
    end

    assert_equal [nil, true, true, nil, nil], [none, found, again, living, gone]
  end

  def test_what_an_orphans_parent_leaves_comes_to_the_subreaper
    found = in_child do
      Sys.subreaper!
      pid = orphan { true }
      wait_until { Sys.ended_child } == pid && how_it_ended(pid)
    end

    assert_equal 0, found
  end
end
