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
  end

  def test_a_crash_costs_one_test
    run = suite(env: { "DIE" => "7" })

    assert_equal 1, run.status.exitstatus, run
    assert_includes run.errors, "killed by SIGKILL while it ran RailsTest#test_7"
    assert_equal ALL - [7], run.ran.map(&:first).sort, run
    assert_includes run.output, "result not reported" # in the words of Rails
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

  def suite(file = "rails_test.rb", **options)
    Support::SuiteRun.minitest(file, every: 3, bundle: self.class.bundle, **options)
  end
end
