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

  private

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
