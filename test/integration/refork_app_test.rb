# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "support/suite_run"

# Suites of an app that refork: with transactions around several tests, and with a server in the test process.
class ReforkAppTest < Minitest::Test
  FOLDER = File.join(Support::SuiteRun::FOLDER, "app")
  OPEN = "a connection of ActiveRecord was in a transaction that had begun before the test"
  ANOTHER = /^pando: no more reforks: Capybara serves the app from threads of this process/

  def self.bundle = @bundle ||= Bench::Bundle.new("testing-app", File.join(FOLDER, "Gemfile")).prepare

  # Only the specs 3 to 5 have no transaction around them. There are 3 specs in each transaction.
  def test_a_refork_comes_before_a_transaction_or_waits_for_its_end
    [false, true].each do |strict|
      run = specs(every: 1, strict: strict)

      assert_predicate run.status, :success?, run
      assert_includes run.output, "15 examples, 0 failures"
      assert_equal [1, 1, 1, 2, 3, 4, 5, 5, 5, 6, 6, 6, 7, 7, 7], generations(run), run
      assert_equal "pando: 2 tests ran without the last refork: #{OPEN} (docs/testing.md)\n", run.errors
    end
  end

  def test_a_refork_that_has_waited_takes_place_before_the_next_test
    run = specs(every: 2)

    assert_predicate run.status, :success?, run
    assert_equal [1, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 5, 5, 5], generations(run), run
    assert_equal "pando: 1 test ran without the last refork: #{OPEN} (docs/testing.md)\n", run.errors
  end

  def test_groups_that_all_have_a_transaction_refork_in_any_order
    run = specs("-e", "let_it_be", "-e", "own", "-e", "part", "--order", "rand:5", every: 3, strict: true)

    assert_predicate run.status, :success?, run
    assert_includes run.output, "12 examples, 0 failures"
    assert_equal [1, 2, 3, 4].flat_map { |generation| [generation] * 3 }, run.ran.map(&:last), run
    assert_empty run.errors
  end

  def test_a_run_that_has_waited_for_its_end_says_so
    run = specs("-e", "let_it_be", every: 3, env: { "SUITE" => "1" })

    assert_predicate run.status, :success?, run
    assert_equal "pando: no refork took place in 3 tests: #{OPEN} (docs/testing.md)\n", run.errors
    assert_equal 1, specs("-e", "let_it_be", every: 3, strict: true, env: { "SUITE" => "1" }).status.exitstatus
  end

  # A server that was started before the first refork, between two of them, or by each test.
  %w[early late each].each do |boot|
    define_method("test_pandos_server_goes_on_in_each_generation_when_it_boots_#{boot}") do
      [false, true].each do |strict|
        run = visits(server: "pando", boot: boot, strict: strict)

        assert_predicate run.status, :success?, run
        assert_equal [1, 1, 2, 2, 3, 3], run.ran.map(&:last), run
        assert_empty run.errors
      end
    end
  end

  def test_no_refork_while_capybara_serves_by_another_server
    [false, true].each do |strict|
      run = visits(server: "webrick", boot: "late", strict: strict, every: 1)

      assert_predicate run.status, :success?, run
      assert_equal [1, 2, 2, 2, 2, 2], run.ran.map(&:last), run
      assert_equal 1, run.errors.scan(ANOTHER).size, run
      assert_equal 1, run.errors.lines.size, run
    end
  end

  def test_no_refork_at_all_fails_in_strict_mode
    run = visits(server: "webrick", boot: "early", strict: true)

    assert_equal 1, run.status.exitstatus, run
    assert_includes run.output, "no refork took place in 6 tests: Capybara serves the app from threads"
  end

  private

  def generations(run) = run.ran.sort.map(&:last)

  def specs(*arguments, env: {}, **options)
    Dir.mktmpdir do |folder|
      command = [bundle.executable("rspec-core", "rspec"), File.join(FOLDER, "transactions_spec.rb"), *arguments]
      suite(command, env: { "DATABASE" => File.join(folder, "notes.sqlite3"), **env }, **options)
    end
  end

  def visits(server:, boot:, every: 2, **options)
    suite([File.join(FOLDER, "capybara_test.rb")], every: every, env: { "SERVER" => server, "BOOT" => boot }, **options)
  end

  def suite(command, **options)
    Support::SuiteRun.new([Gem.ruby, "-W1", *Support::SuiteRun.library, *command], bundle: bundle, **options)
  end

  def bundle = self.class.bundle
end
