# frozen_string_literal: true

require "test_helper"
require "pando/hooks"

class HooksTest < Minitest::Test
  def setup
    @hooks = Pando::Hooks.new
  end

  def test_blocks_run_in_the_order_they_were_added_with_the_arguments
    calls = []
    @hooks.add(:after_worker_fork) { |server, worker| calls << [:first, server, worker] }
          .add(:after_worker_fork) { |server| calls << [:second, server] }
    @hooks.add(:before_fork) { calls << :other }
    @hooks.run(:after_worker_fork, :server, :worker)

    assert_equal [%i[first server worker], %i[second server]], calls
  end

  def test_any_tells_whether_something_would_run
    refute @hooks.any?(:before_fork)
    @hooks.add(:before_fork) { nil }

    assert @hooks.any?(:before_fork)
    refute @hooks.any?(:after_worker_fork)
  end

  def test_a_hook_without_blocks_does_nothing
    assert_nil @hooks.run(:before_fork, :server)
  end

  def test_every_hook_can_be_added_and_run
    assert_equal 11, Pando::Hooks::NAMES.size
    ran = []
    Pando::Hooks::NAMES.each do |name|
      @hooks.add(name) { ran << name }
      @hooks.run(name)
    end

    assert_equal Pando::Hooks::NAMES, ran
  end

  def test_an_unknown_name_is_a_config_error_with_the_nearest_right_one
    error = assert_raises(Pando::ConfigError) { @hooks.add(:after_worker_frok) { nil } }

    assert_includes error.message, "unknown hook :after_worker_frok"
    assert_includes error.message, "did you mean after_worker_fork?"
  end

  def test_a_block_is_needed
    assert_raises(Pando::ConfigError) { @hooks.add(:before_fork) }
  end

  def test_run_of_an_unknown_name_is_a_mistake_of_the_caller
    assert_raises(ArgumentError) { @hooks.run(:before_frok) }
  end

  def test_what_a_block_raises_names_the_hook_its_line_and_the_original
    line = __LINE__ + 1
    @hooks.add(:after_mold_fork) { raise IOError, "no database" }
    error = assert_raises(Pando::HookError) { @hooks.run(:after_mold_fork) }

    assert_equal "after_mold_fork hook at #{__FILE__}:#{line} raised IOError: no database", error.message
    assert_equal :after_mold_fork, error.hook
    assert_equal "#{__FILE__}:#{line}", error.location
    assert_instance_of IOError, error.cause
    assert_includes error.cause.backtrace.first, "#{__FILE__}:#{line}"
  end

  def test_errors_that_are_no_standard_errors_are_wrapped_too
    [NotImplementedError, LoadError, SyntaxError, SystemStackError, SecurityError, Exception].each do |error_class|
      hooks = Pando::Hooks.new.add(:before_fork) { raise error_class, "no" }

      assert_instance_of error_class, assert_raises(Pando::HookError) { hooks.run(:before_fork) }.cause
    end
  end

  def test_what_ends_the_process_or_the_request_is_passed_on
    [SystemExit, Interrupt, SignalException.new("TERM"), Pando::RequestTimeout].each do |error|
      hooks = Pando::Hooks.new.add(:before_fork) { raise error }

      assert_raises(error.is_a?(Class) ? error : error.class) { hooks.run(:before_fork) }
    end
  end

  def test_the_blocks_behind_one_that_raises_do_not_run
    ran = false
    @hooks.add(:before_fork) { raise "first" }.add(:before_fork) { ran = true }

    assert_raises(Pando::HookError) { @hooks.run(:before_fork) }
    refute ran
  end

  # The parameters of its block, and where it runs.
  KNOWN = {
    before_fork: ["server", "mold, or a worker to be promoted"], after_mold_fork: ["server, mold", "mold"],
    after_worker_fork: ["server, worker", "worker"], after_worker_ready: ["server, worker", "worker"],
    self_check: ["server, role", "mold, worker, service"],
    after_worker_timeout: ["server, worker, error", "worker"],
    after_worker_hard_timeout: ["server, worker", "monitor"], before_worker_exit: ["server, worker", "worker"],
    after_worker_exit: ["server, worker, ending", "monitor"],
    after_request_complete: ["server, worker, env", "worker"], after_monitor_ready: %w[server monitor]
  }.freeze
  ROW = /\A\| `(\w+) \{ \\\|(.*)\\\| \}` \| ([^|]+) \| [A-Z][^|]*\. \|\z/

  def test_the_docs_show_exactly_these_and_explain_each
    rows = File.readlines(Support::Checkout.path("docs/hooks.md"), chomp: true).grep(/\A\| `/)

    assert_equal(Pando::Hooks::NAMES.map { |name| [name.name, *KNOWN.fetch(name)] },
                 rows.map { |row| row.match(ROW).captures })
  end

  def test_it_is_told_before_each_block_which_one_comes
    lines = []
    2.times { @hooks.add(:self_check) { lines << :ran } }
    @hooks.run(:self_check) { |line| lines << line }
    line = "self_check at #{__FILE__}:#{__LINE__ - 2}"

    assert_equal [line, :ran, line, :ran], lines
  end
end
