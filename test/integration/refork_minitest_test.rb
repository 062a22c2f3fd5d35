# frozen_string_literal: true

require "test_helper"
require "json"
require "pty"
require "tmpdir"
require "support/suite_run"

# Suites of Minitest that refork between their tests.
class ReforkMinitestTest < Minitest::Test
  include Support::Waiting

  ALL = (0...10).to_a
  SUMMARY = /^\d+ runs, .*, 0 failures, 0 errors, .*/

  def test_a_suite_goes_on_in_its_children
    run = suite

    assert_predicate run.status, :success?, run
    assert_equal ALL.map { |index| [index, (index / 3) + 1] }, run.ran, "each test once, three in a generation"
    assert_includes run.output, "10 runs, 10 assertions, 0 failures"
    assert_equal ["after_run in 4, first: false", "at_exit in 4"], run.output.scan(/^(?:after_run|at_exit).*/)
    assert_empty run.errors
  end

  def test_the_stack_does_not_grow
    run = suite(every: 1, env: { "TESTS" => "60" })

    assert_equal 60, run.ran.last.last, run
    assert_equal 1, run.output.scan(/depth (\d+)/).uniq.size, run
  end

  def test_never_reforks_when_told_so
    run = suite(every: 0)

    assert_equal ALL.zip([0] * 10), run.ran
    assert_equal ["after_run in 0, first: true", "at_exit in 0"], run.output.scan(/^(?:after_run|at_exit).*/)
  end

  def test_a_failure_of_any_generation_is_the_runs
    run = suite(env: { "FAIL" => "1" })

    assert_equal 1, run.status.exitstatus, run
    assert_includes run.output, "10 runs, 10 assertions, 1 failures"
    assert_includes run.output, "CountsTest#test_001"
    assert_equal ALL, run.ran.map(&:first)
  end

  def test_a_name_selects_as_ever
    run = suite("-n", "/test_00[4-7]/")

    assert_equal [[4, 1], [5, 1], [6, 1], [7, 2]], run.ran
    assert_includes run.output, "4 runs"
  end

  def test_a_seed_gives_the_same_numbers_again
    draws = Array.new(2) { suite("--seed", "7").output.scan(/draw (\d+)/).flatten }

    assert_equal(*draws)
    assert_equal 10, draws.first.uniq.size
    refute_equal draws.first, suite("--seed", "8").output.scan(/draw (\d+)/).flatten
  end

  def test_a_refork_that_fails_is_a_failure_and_the_suite_goes_on
    Dir.mktmpdir do |folder|
      Dir.mkdir(File.join(folder, "config"))
      File.write(File.join(folder, "config/pando.rb"), "before_fork { raise 'not now' }")
      run = suite(every: 5, dir: folder)

      assert_equal 1, run.status.exitstatus, run
      assert_equal ALL.zip([0] * 10), run.ran
      assert_match(%r{could not refork: before_fork hook at .*config/pando\.rb:1 raised RuntimeError: not now},
                   run.output)
      assert_includes run.output, "12 runs, 10 assertions, 2 failures"
    end
  end

  def test_a_crash_is_a_failure_and_what_was_found_before_is_told
    run = suite(env: { "FAIL" => "1", "DIE" => "7" })

    assert_equal 1, run.status.exitstatus, run
    assert_match(/generation 3 was killed by SIGKILL while it ran CountsTest#test_007/, run.output)
    assert_includes run.errors, "pando: generation 3 was killed by SIGKILL while it ran CountsTest#test_007"
    assert_includes run.output, "7 runs, 6 assertions, 2 failures" # of two generations, and the crash
    assert_equal ["after_run in 2, first: false", "at_exit in 2"], run.output.scan(/^(?:after_run|at_exit).*/)
  end

  def test_the_first_process_tells_of_a_crash_of_its_own_heir
    run = suite(env: { "DIE" => "1", "SIGNAL" => "ABRT" })

    assert_equal 1, run.status.exitstatus, run
    assert_match(/generation 1 was killed by SIGABRT while it ran CountsTest#test_001/, run.output)
    assert_includes run.output, "1 runs, 0 assertions, 1 failures"
    assert_equal ["after_run in 0, first: true", "at_exit in 0"], run.output.scan(/^(?:after_run|at_exit).*/)
  end

  def test_a_signal_to_the_first_process_reaches_the_living_one
    whole, reforked = [0, 3].map { |every| held(every: every) { |pid, _living| Process.kill(:TERM, pid) } }

    assert_equal whole.status.to_i, reforked.status.to_i, reforked
    assert_includes reforked.output, "at_exit in 3"
  end

  def test_the_first_process_ends_by_the_signal_that_ended_the_living_one
    run = suite(env: { "DIE" => "7", "SIGNAL" => "TERM" })

    assert_equal Signal.list["TERM"], run.status.termsig, run
  end

  def test_an_interrupt_of_the_living_process_ends_the_run_with_its_summary
    run = held { |_pid, living| Process.kill(:INT, living) }

    assert_equal 1, run.status.exitstatus, run
    assert_includes run.errors, "Interrupted. Exiting..."
    assert_includes run.output, "7 runs" # those before the one that was interrupted
    assert_includes run.output, "after_run in 3"
  end

  def test_a_terminals_interrupt_reaches_the_living_process_once
    output, status = on_terminal(env: { "HOLD" => "7" }) { |_pid, terminal| terminal.write("\u0003") }

    assert_equal 1, status.exitstatus, output
    assert_equal 1, output.scan("Interrupted. Exiting...").size, output
    assert_equal 1, output.scan("7 runs, ").size, output
    assert_includes output, "at_exit in 3"
  end

  def test_no_more_than_three_processes_and_none_left
    run = held do |pid, living|
      family = wait_until(message: -> { "two children, there are #{children(pid)}" }) do
        children(pid).then { |found| found if found.size == 2 } # the living process and its witness
      end

      assert_includes family, living
      Process.kill(:KILL, pid)
      wait_until(message: "the end of all") { family.none? { |one| alive?(one) } }
    end

    assert_equal Signal.list["KILL"], run.status.termsig
  end

  def test_classes_in_threads_run_in_the_last_generation
    run = Support::SuiteRun.minitest("threads_test.rb", every: 2)

    assert_predicate run.status, :success?, run
    assert_match(/^10 runs, \d+ assertions, 0 failures/, run.output)
  end

  def test_a_run_without_reforks_says_so
    run = Support::SuiteRun.minitest("only_threads_test.rb", every: 4)

    assert_predicate run.status, :success?, run
    assert_equal "pando: no refork took place in 4 tests: the tests ran in threads, and a child has only the " \
                 "thread that forks (docs/testing.md)\n", run.errors
  end

  def test_a_run_that_was_too_short_for_a_refork_says_nothing
    assert_empty Support::SuiteRun.minitest("only_threads_test.rb", every: 5).errors
    assert_empty Support::SuiteRun.minitest("only_threads_test.rb", every: 0).errors
  end

  def test_a_run_without_reforks_fails_in_strict_mode
    run = Support::SuiteRun.minitest("only_threads_test.rb", every: 4, strict: true)

    assert_equal 1, run.status.exitstatus, run
    assert_includes run.output, "no refork took place in 4 tests: the tests ran in threads"
    assert_includes run.output, "5 runs, 4 assertions, 1 failures"
  end

  def test_libraries_are_ready_before_the_apps_callbacks_run
    run = Support::SuiteRun.minitest("callbacks_test.rb", every: 1)

    assert_predicate run.status, :success?, run
    assert_includes run.output, "2 runs, 2 assertions, 0 failures"
  end

  def test_coverage_is_that_of_all_generations_and_reported_once
    whole, reforked = [0, 1].map { |every| coverage(every) }

    assert_equal [1, 1, 1, 1, 1, 1, 1, 1, 1], whole.fetch("lines").compact
    assert_equal [0, 1], whole.fetch("branches").values.flat_map(&:values)
    assert_equal whole, reforked
  end

  def test_the_own_suite_of_a_gem
    folder = Support::SuiteRun.gem("minitest")
    # One of its tests needs the threads of the executor, which a twin has not: with this seed no twin runs it.
    load = 'ENV["SEED"] = "11"; Dir["test/minitest/test_*.rb"].each { |file| require File.expand_path(file) }'
    command = [Gem.ruby, *Support::SuiteRun.library, "-I", "lib", "-I", "test", "-r", "pando/minitest", "-e", load]
    whole, reforked = [0, 40].map { |every| Support::SuiteRun.new(command, every: every, strict: true, dir: folder) }

    assert_predicate reforked.status, :success?, reforked
    assert_equal whole.output[SUMMARY], reforked.output[SUMMARY]
    assert_operator whole.output[SUMMARY].to_i, :>, 100
  end

  def test_strict_mode_counts_each_test_once
    run = suite(strict: true)

    assert_predicate run.status, :success?, run
    assert_equal ALL.map { |index| [index, (index / 3) + 1] }, run.ran
    assert_includes run.output, "10 runs, 10 assertions, 0 failures"
    assert_equal 1, run.output.scan("at_exit").size
    assert_empty run.errors
  end

  private

  # What SimpleCov knows of lines and branches.
  def coverage(every)
    Dir.mktmpdir do |folder|
      run = Support::SuiteRun.minitest("coverage_test.rb", every: every, env: { "COVERAGE_DIR" => folder })

      assert_predicate run.status, :success?, run
      assert_equal 1, run.output.scan("Coverage report generated").size, run
      JSON.parse(File.read(File.join(folder, ".resultset.json"))).dig("Unit Tests", "coverage").values.first
    end
  end

  def suite(*arguments, every: 3, **options, &block)
    Support::SuiteRun.minitest("counts_test.rb", *arguments, every: every, **options, &block)
  end

  # In the midst of test 7.
  def held(every: 3)
    suite(every: every, env: { "HOLD" => "7" }) do |pid, run, out|
      yield pid, Integer(run.read_until(out, /(?<=holding in )\d+$/))
    end
  end

  # The block has its turn in the midst of test 7.
  def on_terminal(env:)
    command = Support::SuiteRun.command("counts_test.rb")
    env = Support::SuiteRun.environment(every: 3).merge(env)
    PTY.spawn(env, *command) do |out, terminal, pid|
      output = +""
      wait_until(message: -> { output }) { (output << read(out)).include?("holding in ") }
      yield pid, terminal
      status = wait_until(message: -> { output }) do
        output << read(out)
        Process.wait2(pid, Process::WNOHANG)&.last
      end
      return [output << read(out), status]
    end
  end

  def read(out)
    chunk = out.read_nonblock(65_536, exception: false)
    chunk.is_a?(String) ? chunk : ""
  rescue Errno::EIO
    "" # nobody writes there any more
  end

  def children(pid) = File.read("/proc/#{pid}/task/#{pid}/children").split.map(&:to_i)

  def alive?(pid)
    File.read("/proc/#{pid}/stat")[/\) (\S)/, 1] != "Z"
  rescue Errno::ENOENT, Errno::ESRCH
    false
  end
end
