# frozen_string_literal: true

require "test_helper"
require "support/doctor_run"
require "support/fault_stage"

# `pando doctor` about connections that the application opens before it is forked.
class DoctorConnectionsTest < Minitest::Test
  include Support::DoctorCase

  parallelize_me!

  # Connects while it is loaded; what a request does comes after it.
  CONNECTS = <<~RUBY
    require "socket"
    OPENED = [TCPSocket.new("127.0.0.1", ENV.fetch("FAULT_PORT").to_i)]
  RUBY

  # As redis-client does: the inherited connection is left alone, and kept.
  CHECKS_ITS_PID = <<~RUBY.freeze
    #{CONNECTS}
    OPENED[0].puts("PING")
    OPENED[0].gets
    OWNER = [Process.pid]
    run lambda { |_env|
      if OWNER.last != Process.pid
        OPENED << TCPSocket.new("127.0.0.1", ENV.fetch("FAULT_PORT").to_i)
        OWNER << Process.pid
      end
      OPENED.last.puts("PING")
      [200, {}, [OPENED.last.gets]]
    }
  RUBY

  # The descriptor's number is all that it has: so does a library in C.
  WRITES_IN_C = <<~RUBY.freeze
    require "fiddle"
    #{CONNECTS}
    WRITE = Fiddle::Function.new(Fiddle.dlopen(nil)["write"],
                                 [Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP, Fiddle::TYPE_SIZE_T], Fiddle::TYPE_SSIZE_T)
    run ->(_env) { [200, {}, [WRITE.call(OPENED[0].fileno, "PING\n", 5).to_s]] }
  RUBY

  def test_a_connection_that_is_held_and_not_used_is_a_warning
    run = doctor("#{CONNECTS}#{CLEAN}", "--format", "json", env: Support::FaultStage.env)

    assert_equal([0, [["shared_socket", "config.ru:2"]], []], [run.status, run.faults, run.errors], run.err)
    assert_match(/open in 3 live processes .*; no worker used it while it served/, run.report["findings"][0]["message"])
    assert_equal(1, doctor("#{CONNECTS}#{CLEAN}", "--fail-on", "warning", env: Support::FaultStage.env).status)
  end

  def test_an_application_that_checks_its_pid_and_reconnects
    run = doctor(CHECKS_ITS_PID, "--format", "json", "--reforks", "2", env: Support::FaultStage.env)

    assert_equal([0, []], [run.status, run.errors], run.out)
    assert_includes(run.faults, ["shared_socket", "config.ru:2"])
  end

  def test_a_connection_that_c_code_of_two_processes_uses
    run = doctor(WRITES_IN_C, "--format", "json", env: Support::FaultStage.env)

    assert_equal([1, [["shared_socket", "config.ru:3"]]], [run.status, run.errors], run.out)
    assert_includes(run.report["findings"][0]["message"], "2 workers used it")
  end

  # A thread of the mold keeps talking over a connection that the workers leave alone.
  def test_what_a_thread_of_another_process_uses_is_not_put_down_to_the_workers
    run = doctor(<<~RUBY, "--format", "json", env: Support::FaultStage.env)
      #{CONNECTS}
      Thread.new { loop { sleep(0.01).then { OPENED[0].puts("PING") } } }.thread_variable_set(:fork_safe, true)
      #{CLEAN}
    RUBY

    assert_equal([0, [["shared_socket", "config.ru:2"]], []], [run.status, run.faults, run.errors], run.out)
  end
end
