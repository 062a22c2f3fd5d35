# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "support/suite_run"

# Suites of RSpec that refork between their examples.
class ReforkRspecTest < Minitest::Test
  ALL = (0...10).to_a

  def test_a_suite_goes_on_in_its_children
    run = suite

    assert_predicate run.status, :success?, run
    assert_equal ALL.map { |index| [index, (index / 3) + 1] }, run.ran, "each example once, three in a generation"
    assert_includes run.output, "10 examples, 0 failures"
    assert_equal ["at_exit in 4"], run.output.scan(/^at_exit.*/)
    assert_equal 1, run.output.scan(/depth (\d+)/).uniq.size, "the stack has grown"
    assert_empty run.errors
  end

  def test_a_failure_of_any_generation_is_the_runs
    run = suite(env: { "FAIL" => "1,8" })

    assert_equal 1, run.status.exitstatus, run
    assert_includes run.output, "10 examples, 2 failures"
    assert_match(/counts_spec\.rb\[1:2\]'? # counts tells 1/, run.output, "RSpec quotes it for some shells")
  end

  def test_stops_at_the_first_failure
    run = suite("--fail-fast", env: { "FAIL" => "4,8" })

    assert_equal 1, run.status.exitstatus, run
    assert_equal (0..4).to_a, run.ran.map(&:first)
    assert_includes run.output, "5 examples, 1 failure"
  end

  def test_a_crash_is_an_error_and_what_was_found_before_is_told
    run = suite(env: { "FAIL" => "1", "DIE" => "7" })

    assert_equal 1, run.status.exitstatus, run
    assert_includes run.output, "generation 3 was killed by SIGKILL while it ran counts tells 7"
    assert_includes run.output, "6 examples, 1 failure, 1 error occurred outside of examples"
    assert_equal ["at_exit in 2"], run.output.scan(/^at_exit.*/)
  end

  def test_a_report_in_a_file_has_all_generations
    Dir.mktmpdir do |folder|
      path = File.join(folder, "junit.xml")
      suite("--format", "RspecJunitFormatter", "--out", path, env: { "FAIL" => "1" }, strict: true)

      report = File.read(path)
      assert_match(/<testsuite [^>]*tests="10" [^>]*failures="1"/, report)
      assert_equal 10, report.scan("<testcase").size
    end
  end

  def test_the_status_file_and_only_failures
    Dir.mktmpdir do |folder|
      options = ["--require", statuses(folder)]
      suite(*options, env: { "FAIL" => "1,8" })
      again = suite("--only-failures", *options, env: { "FAIL" => "8" }, every: 1)

      assert_equal [[1, 1], [8, 2]], again.ran, again
      assert_includes again.output, "2 examples, 1 failure"
    end
  end

  def test_bisect_finds_the_culprit
    run = suite("--bisect", "--seed", "1", "--order", "defined", env: { "BISECT" => "1" }, every: 4)

    assert_match(/counts_spec\.rb\[1:11,1:12\]/, run.output, run)
  end

  # A refork that is due before the first example of a group.
  def test_a_refork_comes_before_the_hooks_of_a_group
    run, log = groups(every: 2)

    assert_predicate run.status, :success?, run
    assert_includes run.output, "6 examples, 0 failures"
    assert_empty run.errors
    assert_equal ["before first of 1", "first 0 of 1", "first 1 of 1",
                  "before inner of 2", "inner 0 of 2", "inner 1 of 2", "after inner of 2", "after first of 2",
                  "before last of 3", "last 0 of 3", "last 1 of 3", "after last of 3"], log.map(&:last)
  end

  def test_in_any_order_each_hook_and_each_example_runs_once
    run, log = groups("--order", "rand:7", every: 1)

    assert_includes run.output, "6 examples, 0 failures"
    assert_equal 12, log.size
    assert_equal names(log).uniq, names(log)
    assert_equal (1..6).to_a, log.map { |_pid, text| text[/\d+\z/].to_i }.uniq
  end

  def test_the_twin_of_a_group_runs_its_hooks_and_one_example
    run, log = groups(strict: true)

    assert_predicate run.status, :success?, run
    assert_includes run.output, "6 examples, 0 failures"
    twin, heir = log.group_by(&:first).values

    assert_equal ["before first", "first 0", "after first"], names(twin)
    assert_equal 12, heir.size
    assert_equal log, twin + heir
  end

  def test_a_group_that_fails_in_its_twin_only_is_an_error
    run, = groups(strict: true, env: { "FAIL_IN_TWIN" => "before first" })

    assert_equal 1, run.status.exitstatus, run
    assert_includes run.output, "fails in a second process forked from the same parent: only here"
    assert_includes run.output, "6 examples, 0 failures, 1 error occurred outside of examples"
  end

  def test_a_hook_after_a_group_that_fails_in_its_twin_only_is_an_error
    Dir.mktmpdir do |folder|
      report = File.join(folder, "report")
      run, = groups("--format", "documentation", "--out", report, "--format", "progress",
                    strict: true, env: { "FAIL_IN_TWIN" => "after first" })

      assert_includes run.output, "fails in a second process forked from the same parent: only here"
      assert_equal 1, File.read(report).scan("only here").size, "the twin writes no report of its own"
    end
  end

  def test_a_group_whose_hook_fails_is_counted_once
    run, log = groups(every: 2, strict: true, env: { "FAIL" => "before inner" })

    assert_includes run.output, "fails in a second process forked from the same parent: as told"
    assert_includes run.output, "6 examples, 2 failures, 1 error occurred outside of examples"
    assert_equal "after last of 2", log.last.last, "no example has run since the last refork"
  end

  def test_a_crash_in_a_hook
    run, log = groups(every: 2, env: { "DIE" => "before inner" })

    assert_includes run.output, "generation 2 was killed by SIGKILL while it ran before(:context) of first inner"
    assert_includes run.output, "2 examples, 0 failures, 1 error occurred outside of examples"
    assert_equal ["before inner of 2", "after first of 1"], log.last(2).map(&:last)
  end

  def test_no_refork_before_a_group_that_does_not_run
    run, log = groups("--fail-fast", every: 2, env: { "FAIL" => "first 1" })

    assert_includes run.output, "2 examples, 1 failure"
    assert_equal "after first of 1", log.last.last
  end

  private

  def names(log) = log.map { |_pid, text| text[/\A.+(?= of)/] }

  # @return [Array<(Support::SuiteRun, Array<(String, String)>)>] with the pid and the text of each line of the log
  def groups(*arguments, every: 20, env: {}, **options)
    Dir.mktmpdir do |folder|
      path = File.join(folder, "log")
      options = { every: every, env: { "LOG" => path, **env }, **options }
      run = Support::SuiteRun.rspec("rspec/groups_spec.rb", *arguments, **options)
      [run, File.readlines(path, chomp: true).map { |line| line.split(" ", 2) }]
    end
  end

  def suite(*arguments, every: 3, **options)
    Support::SuiteRun.rspec("rspec/counts_spec.rb", "-I", "rspec", *arguments, every: every, **options)
  end

  # A file that names the one for --only-failures.
  def statuses(folder)
    path = File.join(folder, "statuses.rb")
    File.write(path, "RSpec.configure { |config| config.example_status_persistence_file_path = " \
                     "#{File.join(folder, "statuses.txt").dump} }\n")
    path
  end
end
