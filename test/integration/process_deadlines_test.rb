# frozen_string_literal: true

require "test_helper"
require "support/servers"

# Promise: nothing lasts for ever: a boot, the start of a worker, a graceful stop.
class ProcessDeadlinesTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  HANGING = <<~'RUBY'
    run lambda { |env|
      Thread.handle_interrupt(Object => :never) { sleep } if env["PATH_INFO"] == "/hang"
      [200, {}, ["pid #{Process.pid}"]]
    }
  RUBY

  def test_a_worker_that_is_not_ready_in_time_is_killed_and_tried_again
    server = serve(config: <<~RUBY)
      workers 2
      refork :manual
      spawn_timeout 1
      after_worker_fork { hold_while("hang") }
    RUBY
    hang = server.write("hang", "")
    failed = server.wait_for("worker.failed") { Process.kill("KILL", server.workers.first.pid) }

    assert_includes(failed["reason"], "it was not ready in time")
    assert_equal(200, server.get("/").status)
    server.wait_for("worker.ready", slot: failed["slot"]) { File.unlink(hang) }
    assert_equal(2, server.workers.size)
  end

  def test_a_mold_that_is_not_ready_in_time_ends_the_boot
    server = serve(app: "sleep", config: "boot_timeout 0.5", ready: false)
    status = server.wait_for_exit

    assert_equal(1, status.exitstatus)
    assert_includes(server.output.lines.last, "it was not ready in time")
  end

  def test_a_graceful_stop_kills_what_does_not_end
    server = serve(app: HANGING, config: "workers 2\ntimeout false\nstop_timeout 0.5")
    socket = hang(server)
    status = server.stop

    assert_equal(0, status.exitstatus)
    killed = server.events("worker.killed")
    assert_equal(["GET /hang"], killed.filter_map { |event| event["request"] })
    assert_includes(killed.first["reason"], "it did not leave in time")
  ensure
    socket&.close
  end

  def test_a_quick_stop_gives_a_request_its_grace_only
    server = serve(app: HANGING, config: "workers 2\ntimeout 60, grace: 0.5\nstop_timeout 60")
    socket = hang(server)
    status = server.stop("INT")

    assert_equal(0, status.exitstatus)
    assert_includes(server.events("worker.killed").first["reason"], "it did not leave in time")
  ensure
    socket&.close
  end

  private

  def hang(server)
    server.connect.tap do |socket|
      socket.write("GET /hang HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
      wait_until(message: "a busy worker") { server.workers.any? { |worker| worker.title.end_with?("busy") } }
    end
  end
end
