# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "pando/testing"

class TestingHooksTest < Minitest::Test
  CALLS = [] # rubocop:disable Style/MutableConstant

  def teardown
    CALLS.clear
  end

  def test_the_config_files_hooks_run_as_around_the_servers_forks
    hooks = load_hooks(<<~RUBY)
      before_fork { |server| TestingHooksTest::CALLS << [:before, server.config.workers] }
      after_mold_fork { |_, mold| TestingHooksTest::CALLS << [:mold, mold.generation, mold.pid] }
      after_worker_fork { |server, worker| TestingHooksTest::CALLS << [server.role.role, worker.slot, worker.generation] }
      workers 3
    RUBY
    hooks.before_fork
    hooks.after_fork(1, 7)

    assert_equal [[:before, 3], [:mold, 7, Process.pid], [:worker, 1, 7]], CALLS
  end

  def test_a_hook_that_raises_is_named
    error = assert_raises(Pando::HookError) { load_hooks("before_fork { raise 'no' }").before_fork }

    assert_match(/before_fork hook at .*pando\.rb:1 raised RuntimeError: no/, error.message)
  end

  def test_nothing_runs_without_a_file
    [nil, "nowhere/pando.rb"].each do |path|
      hooks = Pando::Testing::Hooks.load(path)
      hooks.before_fork
      hooks.after_fork(1, 1)
    end

    assert_empty CALLS
  end

  private

  def load_hooks(text)
    Dir.mktmpdir do |folder|
      path = File.join(folder, "pando.rb")
      File.write(path, text)
      Pando::Testing::Hooks.load(path)
    end
  end
end
