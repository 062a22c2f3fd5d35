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

  # The specs 0 to 2 and 6 to 8 have a transaction around them.
  def test_a_refork_waits_for_the_end_of_a_transaction
    run = specs(every: 1)

    assert_predicate run.status, :success?, run
    assert_equal [0, 0, 0, 1, 2, 3, 3, 3, 3], run.ran.sort.map(&:last), run
    assert_equal "pando: 3 tests ran without the last refork: #{OPEN} (docs/testing.md)\n", run.errors
  end

  def test_a_refork_that_has_waited_takes_place_before_the_next_test
    run = specs(every: 20, strict: true)

    assert_predicate run.status, :success?, run
    assert_equal [0, 0, 0, 1, 1, 1, 1, 1, 1], run.ran.sort.map(&:last), run
    assert_empty run.errors
  end

  def test_a_run_that_has_waited_for_its_end_says_so
    run = specs("-e", "let_it_be", every: 3)

    assert_predicate run.status, :success?, run
    assert_equal "pando: no refork took place in 3 tests: #{OPEN} (docs/testing.md)\n", run.errors
    assert_equal 1, specs("-e", "let_it_be", every: 3, strict: true).status.exitstatus
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

  def specs(*arguments, **options)
    Dir.mktmpdir do |folder|
      command = [bundle.executable("rspec-core", "rspec"), File.join(FOLDER, "transactions_spec.rb"), *arguments]
      suite(command, env: { "DATABASE" => File.join(folder, "notes.sqlite3") }, **options)
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
