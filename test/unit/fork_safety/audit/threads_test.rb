# frozen_string_literal: true

require "test_helper"
require "fiddle"
require "open3"
require "tmpdir"
require "timeout"
require "pando/fork_safety"
require "support/in_child"
require "support/shared_library"

class AuditThreadsTest < Minitest::Test
  include Support::InChild

  Audit = Pando::ForkSafety::Audit

  SLEEPER = <<~C
    #include <pthread.h>
    #include <string.h>
    #include <unistd.h>
    static const char *name;
    static void *sleeper(void *unused) {
      if (*name) pthread_setname_np(pthread_self(), name);
      for (;;) pause();
      return unused;
    }
    int begin(const char *called) {
      pthread_t thread;
      name = strdup(called);
      return pthread_create(&thread, NULL, sleeper, NULL);
    }
  C

  def test_a_live_thread_is_named_with_the_line_that_started_it
    thread = Thread.new { sleep }
    line = "#{__FILE__}:#{__LINE__ - 1}"
    found = of_ruby(thread)

    assert_equal([:lost_thread, :error, line], [found.kind, found.severity, found.location])
    thread.name = "flusher (of things) sleep>"
    wait_until { thread.status == "sleep" }
    assert_equal(['thread "flusher (of things) sleep>"', line], [of_ruby(thread).subject, of_ruby(thread).location])
  ensure
    end_of(thread)
  end

  # ffi sets this for the thread that runs callbacks, which it starts again in a child.
  def test_a_thread_may_say_that_it_is_fork_safe
    thread = Thread.new { sleep }
    thread.thread_variable_set(:fork_safe, true)

    assert_nil of_ruby(thread)
  ensure
    end_of(thread)
  end

  def test_the_line_is_known_whatever_the_path_and_the_locale
    Dir.mktmpdir("pando a\u00fc") do |folder|
      file = File.join(folder, "background.rb")
      File.write(file, "Thread.new { sleep }\n")
      script = "require 'pando/fork_safety'; require './background'; " \
               "print Pando::ForkSafety::Audit.threads.findings.first.location"
      ruby = [RbConfig.ruby, "-I", Support::Checkout.path("lib"), "-e", script]
      found, = Open3.capture2({ "LC_ALL" => "C" }, *ruby, chdir: folder)

      assert_equal("#{file}:1", found.force_encoding(Encoding::UTF_8))
    end
  end

  def test_a_subclass_that_describes_itself_otherwise_is_no_matter
    thread = Class.new(Thread) { def inspect = raise("no") }.new { sleep }

    assert_match(/threads_test/, of_ruby(thread).location)
  ensure
    end_of(thread)
  end

  def test_those_that_nobody_misses_are_no_finding
    timer = Timeout.timeout(60) { Thread.list.find { |one| one.inspect.include?("/timeout.rb:") } }
    waiter = Process.detach(spawn("cat", in: (reader, writer = IO.pipe).first))
    ended = Thread.new { nil }.tap(&:join)

    [timer, waiter].compact.each { |thread| assert_nil(of_ruby(thread), thread.inspect) }
    refute_includes(Audit::LiveThread.all.map(&:thread), ended)
    refute_includes(Audit::LiveThread.all.map(&:thread), Thread.current)
  ensure
    [reader, writer].each(&:close)
    waiter&.join
  end

  def test_a_thread_started_by_pando_is_registered
    code = "Thread.new { sleep }"
    thread = eval(code, binding, Support::Checkout.path("lib/pando/fork_safety/made_up.rb"), 1) # rubocop:disable Security/Eval

    assert_nil(of_ruby(thread))
  ensure
    end_of(thread)
  end

  def test_rubys_own_native_threads_are_not_reported
    answer = in_child do
      5.times { Thread.new { nil }.join } # Ruby keeps such a thread for a while
      Thread.new { sleep }
      Audit::NativeThread.all.map(&:to_h)
    end

    assert_empty(answer)
  end

  def test_nor_are_threads_that_have_just_ended_whatever_they_were_called
    answer = in_child do
      Array.new(50) do
        Array.new(4) { Thread.new { Thread.current.name = "worker" } }.each(&:join)
        Audit::NativeThread.all.map(&:to_h)
      end
    end

    assert_empty(answer.flatten)
  end

  def test_a_native_thread_is_named_by_the_library_it_began_in
    answer = in_child do
      start("libsleeper.so", "")
      wait_until { Audit::NativeThread.all.any? }
      Audit.threads.findings.map(&:to_h)
    end

    assert_equal([["native_thread", "libsleeper.so"]], answer.map { |one| [one[:kind], one[:details][:library]] })
  end

  def test_a_known_one_is_named_by_its_comm_and_a_prepared_one_is_none
    answer = in_child do
      start("librdkafka.so", "rdk:main")
      start("libjemalloc.so", "jemalloc_bg_thd")
      wait_until { Audit::NativeThread.all.map(&:comm).grep(/rdk|jem/).size == 2 }
      Audit.threads.then { |report| [report.threads.map(&:to_h), report.findings.map(&:subject)] }
    end

    assert_equal(%w[jemalloc librdkafka], answer.first.map { |one| one[:library] }.sort)
    assert_equal(['native thread "rdk:main" of librdkafka'], answer.last)
  end

  def test_a_name_alone_is_enough_where_the_stack_says_nothing
    assert_equal("librdkafka", Audit::NativeThread.new(1, "rdk:broker1", nil).library)
    assert_equal("libother.so", Audit::NativeThread.new(1, "rdk:broker1", "/usr/lib/libother.so").library)
    assert_nil(Audit::NativeThread.new(1, "ruby", nil).library)
  end

  def test_threads_that_end_while_they_are_looked_at_are_passed_over
    assert_nil(Audit::NativeThread.send(:find, 999_999, Audit::ThreadStack.new))
    assert_nil(Audit::ThreadStack.new.object(999_999))
  end

  private

  def of_ruby(thread) = Audit::LiveThread.new(thread).finding

  def start(file, name)
    library = Fiddle.dlopen(Support::SharedLibrary.path(file, SLEEPER))
    Fiddle::Function.new(library["begin"], [Fiddle::TYPE_VOIDP], Fiddle::TYPE_INT).call(name)
  end

  def end_of(thread)
    thread&.kill
    thread&.join
  end
end
