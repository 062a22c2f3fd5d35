# frozen_string_literal: true

require_relative "../config/config_test_case"
require "support/in_child"
require "pando/cli/check"

# What `pando --check` says of settings that the server would start with all the same.
class CLICheckTest < ConfigTestCase
  include Support::InChild

  def notes(*text, env: {}) = Pando::CLI::Check.new(load_config(*text, env: env), env).notes

  # As a user that no file belongs to: root may write anywhere.
  def notes_for_nobody(text)
    skip "only root can become another user" unless Process.uid.zero?
    check = Pando::CLI::Check.new(load_config(text))
    in_child do
      Process::UID.change_privilege(100_000 + Process.pid)
      check.notes
    end
  end

  def test_a_spool_that_does_not_exist
    expected = "warning: spool (config/pando.rb:2): #{@dir}/none does not exist: request bodies beyond " \
               "`body_memory` get 503, and slow readers' responses take `response_memory`'s total, then workers. " \
               "Make a directory of it that the server may write to, or name another one with `spool`"

    assert_equal([expected], notes("workers 1\nspool 'none'"))
  end

  def test_a_spool_that_is_a_file
    write("none", "")

    assert_match(%r{\Awarning: spool \(config/pando.rb:1\): #{@dir}/none is no directory: }, notes("spool 'none'").join)
  end

  def test_a_spool_that_cannot_be_written
    File.chmod(0o755, @dir)
    FileUtils.mkdir(File.join(@dir, "ours"), mode: 0o755)

    assert_match(%r{\Awarning: spool \(config/pando.rb:1\): #{@dir}/ours cannot be written: },
                 notes_for_nobody("spool 'ours'").join)
    assert_empty(notes)
  end

  def test_in_direct_mode_there_are_no_answers_to_keep
    assert_match(%r{/none does not exist: request bodies beyond `body_memory` get 503. Make },
                 notes("reactor false\nspool 'none'").join)
  end

  # A file that was translated by hand, or by an earlier `pando init`.
  def test_a_heap_that_is_compacted_before_each_fork
    ["workers 1\nbefore_fork { Process.warmup }", "before_fork do\n  GC.compact\nend",
     "if true\n  # one\n  before_fork do |server|\n    # two\n\n    Process.warmup\n  end\nend"].each do |text|
      line = text.lines.index { |row| row.match?(/warmup|compact/) } + 1
      warning = "warning: config/pando.rb:#{line}: this runs before each fork, and makes memory private that the " \
                "workers share. Remove it: gc mold: :auto does it once in each mold"

      assert_equal [warning], notes(text)
    end
    ["before_fork { 1 } # Process.warmup", "after_mold_fork { Process.warmup }",
     "before_fork do\n  1\nend\nafter_mold_fork do\n  GC.compact\nend"].each { |text| assert_empty notes(text), text }
  end

  def refusal(text) = assert_raises(Pando::ConfigError) { Pando::CLI::Check.new(load_config(text)).call }.message

  def test_folders_of_logs_pidfiles_and_admin_sockets
    write("config.ru", "run nil")
    { "access_log 'none/a.log'" => "access_log: there is no folder #{@dir}/none. Create it first",
      "slow_log 2, 'none/a.log'" => "slow_log_file: there is no folder #{@dir}/none. Create it first",
      "pidfile 'none/a.pid'" => "pidfile: there is no folder #{@dir}/none. Create it first",
      "admin 'unix:none/a.sock'" => "admin: there is no folder #{@dir}/none. Create it first",
      "pidfile 'config'" => "pidfile: #{@dir}/config is a folder. Name a file",
      "access_log 'config'" => "access_log: #{@dir}/config is a folder. Name a file" }.each do |line, reason|
      assert_equal("config/pando.rb:1: #{reason}", refusal(line))
    end
  end

  def test_a_profile_needs_a_profiler
    %w[vernier stackprof].each { |gem| skip "#{gem} is installed" if Gem.loaded_specs.key?(gem) }
    write("config.ru", "run nil")
    reason = refusal("first_request_profile true")

    assert_match(%r{\Aconfig/pando.rb:1: first_request_profile: it needs a profiler: add `gem "vernier"`}, reason)
    assert_nil(Pando::CLI::Check.new(load_config("first_request_profile false")).call)
  end

  def test_a_variable_that_has_no_effect
    expected = "warning: RAILS_MAX_THREADS: a worker has from 1 to 64 threads, and not 100: it has 64 (write " \
               "threads 64 in config/pando.rb)"

    assert_equal([expected], notes("workers 1", env: { "RAILS_MAX_THREADS" => "100" }))
  end

  def test_a_token_that_cannot_be_used
    text = "admin 9394, token_file: 'token'"
    expected = "warning: admin token_file: #{@dir}/token has no token of 16 characters or more, so commands at the " \
               "admin address will be refused"
    assert_equal([expected], notes(text))
    write("token", "short")
    assert_equal([expected], notes(text))
    write("token", "0123456789abcdef")

    assert_empty(notes(text))
  end

  def test_a_contradictory_environment
    env = { "RAILS_ENV" => "production", "RACK_ENV" => nil }

    assert_equal(["warning: config/pando.rb:1 says environment development, and RAILS_ENV=production has no effect: " \
                  "remove the line, or unset RAILS_ENV"], notes("environment 'development'", env: env))
    assert_empty(notes("environment 'production'", env: env))
  end

  def test_a_swarm_has_no_spool
    assert_empty(notes("workers 0\nspool 'none'\nnode(:own) { exit! }"))
  end
end
