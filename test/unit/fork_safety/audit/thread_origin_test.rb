# frozen_string_literal: true

require "test_helper"
require "pando/fork_safety"

class ThreadOriginTest < Minitest::Test
  Origin = Pando::ForkSafety::Audit::ThreadOrigin
  LiveThread = Pando::ForkSafety::Audit::LiveThread

  def test_a_gem_is_named_with_its_version_and_the_path_inside_it
    minitest = Gem.loaded_specs.fetch("minitest")
    origin = Origin.new("#{minitest.full_gem_path}/lib/minitest/background.rb:7", "runner")

    assert_equal(["minitest #{minitest.version}", "minitest", "lib/minitest/background.rb:7"],
                 [origin.owner, origin.gem_name, origin.place])
    assert_equal("No forked process has the thread (\"runner\") of minitest #{minitest.version} that " \
                 "lib/minitest/background.rb:7 starts: its work silently stops there",
                 origin.message)
    assert_match(/fork_safety threads: { allow: \["minitest"\] }\.\z/, origin.advice)
  end

  def test_the_application_s_own_files_and_ruby_s
    own = Origin.new("/srv/app/lib/poller.rb:12", directory: "/srv/app")

    assert_equal(["the application", nil, "lib/poller.rb:12"], [own.owner, own.gem_name, own.place])
    assert_match(%r{allow: \["lib/poller\.rb:12"\]}, own.advice)
    assert_equal("Ruby's standard library", Origin.new("#{RbConfig::CONFIG["rubylibdir"]}/drb/drb.rb:1").owner)
    assert_equal("C code (no name)", Origin.new(nil).place)
  end

  def test_the_advice_of_the_library_table_comes_first
    assert_match(/\ARestart it\. To accept/, Origin.new("/a/b.rb:1").advice("Restart it."))
  end

  def test_what_a_setting_may_call_it
    origin = Origin.new("/srv/app/lib/poller.rb:12", directory: "/srv/app")

    ["lib/poller.rb", "app/lib/poller.rb:12", "poller.rb", "/srv/app/lib/poller.rb:12", "app/lib"].each do |pattern|
      assert(origin.match?(pattern), pattern)
    end
    ["oller.rb", "poller", "lib/poller.rb:1", "minitest"].each { |pattern| refute(origin.match?(pattern), pattern) }
    assert(Origin.new("#{Gem.loaded_specs.fetch("minitest").full_gem_path}/a.rb:1").match?("minitest"))
  end

  def test_a_key_is_one_line_of_bounded_size
    long = "/#{"\u00fc" * 400}\n/a.rb:1"

    assert_operator(Origin.key(long).bytesize, :<=, 300)
    assert(Origin.key(long).end_with?("?/a.rb:1") && Origin.key(long).valid_encoding?)
    assert_equal("/a.rb:1", Origin.key("/a.rb:1"))
  end

  def test_rows_of_the_library_table_excuse_threads
    { "concurrent-ruby" => "/gems/concurrent-ruby-1.3.4/lib/concurrent-ruby/concurrent/executor/x.rb:9",
      "activerecord" => "/g/active_record/connection_adapters/abstract/connection_pool/reaper.rb:40",
      "timeout" => "/gems/timeout-0.4.1/lib/timeout.rb:98" }.each do |name, location|
      assert(Pando::ForkSafety::Libraries::Known.library(name).revives?(location), name)
      refute(Pando::ForkSafety::Libraries::Known.library(name).revives?("/srv/app/lib/timeout.rb:3"), name)
    end
  end

  def test_a_thread_of_such_a_row_is_excused_once_its_library_is_loaded
    require "timeout"
    thread = eval("Thread.new { sleep }", binding, "/gems/timeout-0.4.1/lib/timeout.rb", 98) # rubocop:disable Style/EvalWithLocation

    assert_equal("timeout starts it again in each child", LiveThread.new(thread).excuse)
  ensure
    thread&.kill
  end
end
