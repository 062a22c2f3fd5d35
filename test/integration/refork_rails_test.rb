# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "support/suite_run"

# Rails' parallelize(workers: 2): each of its processes reforks by itself.
class ReforkRailsTest < Minitest::Test
  APP = File.expand_path("../fixtures/apps/rails", __dir__)
  ALL = (0...20).to_a

  def self.bundle = @bundle ||= Bench::Bundle.new("rails", File.join(APP, "Gemfile")).prepare

  def test_each_process_reforks_by_itself
    run = suite

    assert_predicate run.status, :success?, run
    assert_match(/^20 runs, \d+ assertions, 0 failures, 0 errors/, run.output)
    assert_equal ALL, run.ran.map(&:first).sort
    assert_operator run.ran.map(&:last).max, :>=, 4
    assert_empty run.errors, "its connection to the process that distributes tests is none of the app's"
  end

  def test_a_crash_costs_one_test
    run = suite(env: { "DIE" => "7" })

    assert_equal 1, run.status.exitstatus, run
    assert_includes run.errors, "killed by SIGKILL while it ran RailsTest#test_7"
    assert_equal ALL - [7], run.ran.map(&:first).sort, run
    assert_includes run.output, "result not reported" # in the words of Rails
  end

  def test_each_process_is_judged_when_it_ends
    run = suite("parallel_test.rb", every: 1, env: { "PANDO_REFORK_FAIL_ON" => "warning" })

    assert_equal 1, run.status.exitstatus, run
    assert_equal 2, run.output.scan("Pando::ForkSafety#lost_thread [minitest/parallel_test.rb:26]").size, run
  end

  def test_a_judgement_that_fails_is_told_and_does_not_keep_the_run_from_its_end
    run = suite("parallel_test.rb", every: 1, env: { "BROKEN" => "1" })

    assert_equal 1, run.status.exitstatus, run
    2.times do |number|
      message = "what the last generation of process #{number} lost or shared is unknown: broken (IOError)"

      assert_includes run.errors, "pando: #{message}\n"
      assert_includes run.output, message
    end
    assert_equal ALL.first(10), run.ran.map(&:first).sort, run
  end

  def test_no_two_processes_draw_the_same_numbers
    run = suite("parallel_test.rb", every: 1)

    assert_predicate run.status, :success?, run
    assert_equal 10, run.output.scan(/draw (\d+)/).uniq.size, run
  end

  def test_in_threads_nothing_reforks_and_that_is_said
    run = suite("parallel_test.rb", every: 1, env: { "WITH" => "threads" })

    assert_predicate run.status, :success?, run
    assert_equal "pando: no refork took place in 10 tests: the tests ran in threads, and a child has only the " \
                 "thread that forks (docs/testing.md)\n", run.errors
  end

  def test_records_in_transactions
    Dir.mktmpdir do |folder|
      run = suite("records_test.rb", strict: true, env: { "DATABASE" => File.join(folder, "notes.sqlite3") })

      assert_predicate run.status, :success?, run
      assert_includes run.output, "12 runs, 24 assertions, 0 failures, 0 errors"
      assert_empty run.errors
    end
  end

  private

  def suite(file = "rails_test.rb", every: 3, **options)
    Support::SuiteRun.minitest(file, every: every, bundle: self.class.bundle, **options)
  end
end
