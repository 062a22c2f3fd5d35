# frozen_string_literal: true

require "test_helper"
require "pando/server/state_watch"
require_relative "../sys/support/in_child"

class StateWatchTest < Minitest::Test
  include SysSupport::InChild

  Config = Struct.new(:fork_safety_state)
  # Stands for a role: remembers what it reports.
  Role = Struct.new(:role, :told) do
    def report(_kind, text:) = told << text.split("\n").values_at(0, 3)
    def context = self
    def monitor_pid = Process.ppid
  end

  def test_what_can_be_put_back_is_put_back_in_the_child_only
    answer = in_child do
      watch = born
      File.umask(0o777)
      asked(watch)
      [told, File.umask, in_child { watch.after_fork.then { File.umask } }]
    end

    assert_equal([[["put back", "umask"]], 0o777, 0o022], answer)
  end

  def test_anything_else_declines
    answer = in_child do
      watch = born
      File.umask(0o777)
      ENV["STATE"] = "secret"
      Process.setrlimit(:CORE, 0, 0)
      error = error_in { asked(watch) }
      watch.after_fork
      [told.sort_by(&:last), error, File.umask]
    end

    assert_equal([["refused", "env STATE"], ["refused", "limit core file size"]], answer[0])
    assert_match(/\AThe app changed its process while it served requests: limit .* \(and 1 more\)\. /, answer[1])
    assert_equal(0o777, answer[2], "there is no child")
  end

  def test_what_another_worker_has_done_too_is_handed_down
    answer = in_child do
      watch = born
      before = Pando::ForkSafety::ProcessState.take
      ENV["STATE"] = "1"
      change, = Pando::ForkSafety::ProcessState.changes(before, Pando::ForkSafety::ProcessState.take)
      first = error_in { asked(watch) }
      watch.seen(change.token)
      asked(watch)
      [first.nil?, told]
    end

    assert_equal([false, [["refused", "env STATE"], ["", "env STATE"]]], answer)
  end

  def test_what_a_hook_changes_before_the_fork_is_no_change_and_what_it_puts_back_is_none_either
    answer = in_child do
      watch = born
      ENV["STATE"] = "1"
      2.times do |number|
        asked(watch) do
          ENV.delete("STATE")
          ENV["HOOK"] = number.to_s
          Dir.chdir("/")
        end
      end
      told
    end

    assert_empty(answer)
  end

  def test_what_the_setting_allows_is_inherited
    [:allow, { allow: %w[umask env], otherwise: :refuse }].each do |policy|
      answer = in_child do
        watch = born(policy)
        File.umask(0o777)
        ENV["STATE"] = "1"
        asked(watch)
        watch.after_fork
        [told, File.umask]
      end

      assert_equal([[], 0o777], answer, policy)
    end
  end

  def test_or_reported
    answer = in_child do
      watch = born(:report)
      File.umask(0o777)
      asked(watch)
      watch.after_fork
      [told, File.umask]
    end

    assert_equal([[["", "umask"]], 0o777], answer)
  end

  def test_a_mold_that_forks_is_not_looked_at
    answer = in_child do
      watch = born
      ENV["STATE"] = "1"
      watch.hand_down
      watch.before_fork(Role.new(:mold, told), :mold)
      watch.before_fork(worker, :service)
      told
    end

    assert_empty(answer)
  end

  def test_limits_that_somebody_has_given_to_the_mold_as_well_are_no_request_s_doing
    answer = in_child do
      watch = Pando::Server::StateWatch.new(Config.new(:refuse))
      watch.born(Role.new(:mold, []))
      watch.born(worker)
      Process.setrlimit(:CORE, 0, 0) # this process is the mold too
      Process.setpriority(Process::PRIO_PROCESS, 0, Process.getpriority(0, 0) + 1)
      asked(watch)
      told
    end

    assert_empty(answer)
  end

  private

  # In a worker that has just been born.
  def born(policy = :refuse)
    File.umask(0o022)
    Pando::Server::StateWatch.new(Config.new(policy)).tap { |watch| watch.born(worker) }
  end

  def asked(watch)
    watch.hand_down
    yield if block_given?
    watch.before_fork(worker, :mold)
  end

  def error_in
    yield
    nil
  rescue Pando::ForkDeclined => e
    e.message
  end

  def worker = @worker ||= Role.new(:worker, [])
  def told = worker.told
end
