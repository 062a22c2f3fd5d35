# frozen_string_literal: true

require "test_helper"
require "support/c_program"
require "support/servers"

# A thread of a library in C has a lock while its process is forked: nobody will ever open it in the child.
class StuckChildTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  # The lock is needed for the digests of OpenSSL, and by the application's own check.
  APP = <<~RUBY
    require "fiddle"
    require "openssl"
    library = Fiddle.dlopen(ENV.fetch("HELD_LOCK"))
    START, TAKE = %w[held_lock_start held_lock_take].map do |name|
      Fiddle::Function.new(library[name], [], Fiddle::TYPE_INT)
    end
    OpenSSL::Digest.singleton_class.prepend(Module.new do
      def digest(*)
        TAKE.call unless File.exist?("own check")
        super
      end
    end)
    run lambda { |env|
      START.call if env["PATH_INFO"] == "/hold"
      [200, {}, [Process.pid.to_s]]
    }
  RUBY

  CONFIG = <<~RUBY
    workers 2
    refork :manual
    self_check timeout: 1
    self_check { |server, role| TAKE.call if File.exist?("own check") }
    self_check { |server, role| raise IOError, "no database" if File.exist?("raise") }
    before_fork { File.delete("hold") && START.call if File.exist?("hold") }
  RUBY

  def server = @server ||= serving

  def serving(app: APP, more: "", **options)
    environment = { "HELD_LOCK" => Support::CProgram.library("held_lock") }
    @server = serve(app: app, config: "#{CONFIG}\n#{more}", env: environment, **options)
  end

  def check_failures = server.events("check.failed")

  # One worker with the lock held, which the next refork will ask.
  def hold_in_workers
    held = []
    held |= [server.get("/hold").body.to_i] until held.size == 2
  end

  def assert_named(event, step)
    assert_match step, event["step"]
    assert_includes event["reason"], "stuck in its self-check: #{event["step"]}"
    assert_match(/waits for a lock/, stack(event))
    assert_match(/the lock is at .*held_lock-\h+\.so/, stack(event))
  end

  def test_a_new_mold_that_is_stuck_is_discarded
    workers = pids(server.workers)
    hold_in_workers
    server.wait_for("generation.discarded") { server.signal("USR2") }

    event = check_failures.last
    assert_equal ["mold", 1], event.values_at("role", "generation")
    assert_named event, "openssl"
    assert_match(/taken by thread \d+ \(flusher\) of process (#{workers.join("|")})/, stack(event))
    assert_match(/#\d+ .*held_lock_take/, stack(event)) if debugger?
    assert_equal workers, pids(server.workers), "nobody else was touched"
    refute_includes server.processes.map(&:pid), event["pid"]
  end

  # Every fork of this mold is stuck; the worker that is left has no such thread, and can be its successor.
  def test_a_mold_whose_children_are_stuck_twice_is_replaced_by_a_worker
    server.write("hold", "")
    answers = under_requests(server) do
      server.wait_for("generation.current", purpose: "heal") { replace_one }
      wait_until { server.events("worker.ready").size == 3 }
    end

    assert_equal([["worker", 0]] * 2, check_failures.map { |event| event.values_at("role", "generation") })
    check_failures.each { |event| assert_named event, "openssl" }
    assert_equal 1, server.events("mold.discarded").size
    assert_empty server.events("generation.discarded")
    assert_equal [200], answers.uniq, "a request was lost"
  end

  def test_without_reforking_it_is_replaced_by_a_cold_boot
    serving(more: "refork false")
    server.write("hold", "")
    server.wait_for("generation.current", purpose: "heal") { replace_one }

    assert_equal 2, check_failures.size
    assert_equal 2, server.events("mold.booting").size
  end

  def test_the_applications_own_check
    hold_in_workers
    server.write("own check", "")
    event = server.wait_for("check.failed") { server.signal("USR2") }

    assert_named event, /\Aself_check at .*pando\.rb:\d+\z/
  end

  # It takes three times the limit of a step.
  def test_a_check_that_works_long_is_not_stuck
    serving(more: <<~RUBY)
      self_check do |_, role|
        until_used = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + 3
        nil while role.role == :mold && Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < until_used
      end
    RUBY
    server.refork

    assert_empty check_failures
  end

  # As a lock would that is tried again and again.
  def test_a_check_that_works_for_ever_is_stuck_at_the_end_of_its_start
    serving(more: <<~RUBY)
      spawn_timeout 4
      self_check { nil while File.exist?("spin") }
    RUBY
    server.write("spin", "")
    event = server.wait_for("check.failed") { server.signal("USR2") }

    assert_match(/\Aself_check at .*pando\.rb:\d+\z/, event["step"])
    assert_includes event["reason"], "stuck in its self-check: #{event["step"]}"
  end

  def test_a_check_that_raises
    server.write("raise", "")
    event = server.wait_for("check.failed") { server.signal("USR2") }

    assert_match(/\Aself_check at .*pando\.rb:\d+\z/, event["step"])
    assert_match(/self_check hook at .*pando\.rb:\d+ raised IOError: no database/, event["reason"])
    server.wait_past("generation.discarded")
    File.delete(File.join(server.folder, "raise"))
    server.refork
  end

  def test_a_server_none_of_whose_children_can_live_says_why
    serving(more: "before_fork { START.call unless defined?(HELD) && HELD; HELD = true }", ready: false)
    status = server.wait_for_exit

    assert_equal 1, status.exitstatus
    assert_equal(%w[worker worker], check_failures.map { |event| event["role"] })
    assert_match(/could not start .*stuck in its self-check: openssl/, server.output)
  end

  # It checks itself too, lest its children do so for the first time.
  def test_a_cold_mold_that_is_stuck_says_why
    serving(app: "#{APP}\nSTART.call", ready: false)

    assert_equal 1, server.wait_for_exit.exitstatus
    assert_equal(%w[mold], check_failures.map { |event| event["role"] })
  end

  # Before it has said a word: in what a library does within the fork.
  def test_one_that_is_stuck_in_the_fork_itself
    serving(app: "#{APP}\n#{<<~RUBY}")
      Process.singleton_class.prepend(Module.new do
        def _fork = super.tap { |pid| TAKE.call if pid.zero? && File.exist?("stuck") }
      end)
    RUBY
    mold = server.mold.pid
    server.write("hold", "")
    server.write("stuck", "")
    event = server.wait_for("check.failed") { replace_one }

    assert_named event, "fork"
    assert_equal "worker", event["role"]
    assert_equal mold, server.mold.pid
    File.delete(File.join(server.folder, "stuck"))
    server.write("own check", "")
    refute_includes server.processes.map(&:pid), event["pid"]
  end

  def test_it_can_be_switched_off
    serving(app: "#{APP}\nSTART.call", more: "self_check false")
    server.write("raise", "")
    server.refork

    assert_empty check_failures
  end

  private

  def debugger? = %w[eu-stack gdb].any? { |name| system("command -v #{name} >/dev/null") }
  def stack(event) = event["backtrace"].join("\n")
  def pids(processes) = processes.map(&:pid).sort

  # A worker that is told to go by somebody else than the monitor.
  def replace_one = Process.kill("TERM", server.workers.first.pid)
end
