# frozen_string_literal: true

require "test_helper"
require "open3"
require "pando/sys"
require "support/checkout"
require_relative "support/in_child"

class SysForkTest < Minitest::Test
  include SysSupport::InChild

  Sys = Pando::Sys

  # In a child, so that the hook goes with it: what a library does that prepends Process._fork.
  def hook_fork(&around)
    Process.singleton_class.prepend(Module.new { define_method(:_fork) { around.call(-> { super() }) } })
  end

  # The block in a sibling of this process, whose parent must be a subreaper; a line from it.
  def line_of_sibling
    reader, writer = IO.pipe
    unless Sys.fork_sibling
      writer.syswrite("#{answer_of { yield }.to_json}\n") # rubocop:disable Style/ExplicitBlockArgument
      leave
    end
    writer.close
    answer_from(reader)["value"]
  end

  def test_the_new_process_becomes_a_child_of_the_subreaper
    parents = in_child do
      Sys.subreaper!
      reaper = Process.pid
      reader, writer = IO.pipe
      forker = fork do
        leave if Sys.fork_sibling
        Sys.wait_adoption(reaper, 30)
        writer.syswrite("#{Process.ppid}\n")
        leave(7)
      end
      line = reader.gets
      statuses = [Process.wait2, Process.wait2].to_h { |pid, status| [pid, status.exitstatus] }
      [line.to_i == reaper, statuses.delete(forker), statuses.values]
    end

    assert_equal [true, 0, [7]], parents
  end

  def test_a_librarys_hook_runs_once_on_each_side_and_never_in_the_middle
    calls, forker, child = in_child do
      Sys.subreaper!
      reader, writer = IO.pipe
      hook_fork do |fork|
        writer.syswrite("before #{Process.pid}\n")
        fork.call.tap { |pid| writer.syswrite("after #{Process.pid} #{pid.zero? ? "child" : "forker"}\n") }
      end
      leave unless Sys.fork_sibling
      child = Process.wait
      writer.close
      [reader.read.lines(chomp: true).sort, Process.pid, child]
    end

    assert_equal ["after #{child} child", "after #{forker} forker", "before #{forker}"].sort, calls
  end

  # It would be a zombie until the forker ends.
  def test_when_a_hook_raises_in_the_forker_the_middle_is_reaped_all_the_same
    statuses = in_child do
      Sys.subreaper!
      fork do
        hook_fork { |fork| fork.call.tap { |pid| raise "after the fork" unless pid.zero? } }
        Sys.fork_sibling
        leave
      rescue RuntimeError => e
        children = File.read("/proc/self/task/#{Process.pid}/children").split
        leave(e.message == "after the fork" && children.empty? ? 7 : 8)
      end
      [Process.wait2, Process.wait2].map { |_, status| status.exitstatus }.sort
    end

    assert_equal [0, 7], statuses
  end

  def test_what_a_hook_starts_in_the_new_process_lives_on_there
    alive = in_child do
      Sys.subreaper!
      restarted = nil
      hook_fork { |fork| fork.call.tap { |pid| restarted = Thread.new { sleep } if pid.zero? } }
      line_of_sibling { [restarted&.alive?, Thread.list.size] }
    end

    assert_equal [true, 2], alive
  end

  def test_threads_stay_with_the_forker_and_new_ones_can_be_started
    sibling, forker = in_child do
      Sys.subreaper!
      thread = Thread.new { sleep }
      [line_of_sibling { [thread.alive?, Thread.list.size, Thread.new { :ran }.value] }, thread.alive?]
    end

    assert_equal [false, 1, "ran"], sibling
    assert forker
  end

  def test_a_sibling_can_fork_siblings_and_ordinary_children
    statuses = in_child do
      Sys.subreaper!
      reader, writer = IO.pipe
      unless Sys.fork_sibling
        first = Process.pid
        writer.syswrite("#{Process.wait2(fork { leave(5) }).last.exitstatus}\n")
        unless Sys.fork_sibling
          writer.syswrite("#{Process.pid != first}\n")
          leave(8)
        end
        leave(6)
      end
      writer.close
      [reader.read.lines(chomp: true).sort, [Process.wait2, Process.wait2].map { |_, status| status.exitstatus }.sort]
    end

    assert_equal [%w[5 true], [6, 8]], statuses
  end

  def test_the_forker_keeps_no_child
    left = in_child do
      Sys.subreaper!
      reader, writer = IO.pipe
      fork do
        leave unless Sys.fork_sibling
        writer.syswrite("#{error_of { Process.wait }}\n")
        leave
      end
      reader.gets.chomp
    end

    assert_equal "Errno::ECHILD", left
  end

  def test_an_app_that_ignores_sigchld_can_fork_siblings
    answer = in_child do
      Sys.subreaper!
      trap("CHLD", "IGNORE")
      line_of_sibling { "born" }
    end

    assert_equal "born", answer
  end

  def test_a_thread_that_forks_meanwhile_gets_an_ordinary_child
    status, answer = in_child do
      Sys.subreaper!
      status = nil
      hook_fork do |fork|
        other = Thread.main != Thread.current
        Thread.new { status = Process.wait2(fork { leave(5) }).last.exitstatus }.join unless other
        fork.call
      end
      [line_of_sibling { "born" }, status].reverse
    end

    assert_equal 5, status
    assert_equal "born", answer
  end

  def test_after_a_hook_that_raises_a_fork_is_an_ordinary_one_again
    raised, status = in_child do
      Sys.subreaper!
      broken = true
      hook_fork { |fork| broken ? raise("no fork today") : fork.call }
      raised = error_of { Sys.fork_sibling }
      broken = false
      [raised, Process.wait2(fork { leave(5) }).last.exitstatus]
    end

    assert_equal "RuntimeError", raised
    assert_equal 5, status
  end

  # Beneath Pando's own _fork, as fork(2) itself.
  NO_MEMORY = <<~RUBY
    Process.singleton_class.prepend(Module.new { def _fork = raise(Errno::ENOMEM) })
    require "pando/sys"
    began = Pando::Sys.now
    begin
      Pando::Sys.fork_sibling
    rescue Errno::ENOMEM
      print Pando::Sys.now - began
    end
  RUBY

  def test_a_fork_that_fails_is_over_at_once
    output, = Open3.capture2e(RbConfig.ruby, "--disable=gems", "-I", Support::Checkout.path("lib"), "-e", NO_MEMORY)

    assert_match(/\A\d+\.\d/, output)
    assert_operator Float(output), :<, 0.9, "it waits for no middle process, which would take a second"
  end

  def test_the_probe_leaves_nothing_behind
    before, after, child = in_child do
      Sys.probe_fork
      before = open_descriptors
      100.times { Sys.probe_fork }
      [before, open_descriptors, error_of { Process.wait }]
    end

    assert_equal before, after
    assert_equal "Errno::ECHILD", child
  end

  def test_the_probe_says_when_there_may_be_no_more_processes
    error = in_child do
      become_nobody if Process.uid.zero?
      Process.setrlimit(:NPROC, 1)
      error_of { Sys.probe_fork }
    end

    assert_equal "Errno::EAGAIN", error
  end

  def test_the_probe_asks_for_the_middle_process_and_its_child
    skip "needs root: another user's processes would be counted" unless Process.uid.zero?
    errors = in_child do
      tasks = Dir.children("/proc/self/task").size # another user may not look
      become_nobody
      (0..2).map do |more|
        Process.setrlimit(:NPROC, tasks + more, tasks + 2)
        error_of { Sys.probe_fork }
      end
    end

    assert_equal ["Errno::EAGAIN", "Errno::EAGAIN", nil], errors
  end

  private

  # A user that exists nowhere else, so that nobody else's processes are counted.
  def become_nobody = Process::UID.change_privilege(100_000 + Process.pid)
end
