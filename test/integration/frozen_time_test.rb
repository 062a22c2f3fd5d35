# frozen_string_literal: true

require "test_helper"
require "pando/sys/process_stat"
require "support/servers"

# Promise: time in which the whole server stood still, as in a frozen container, is no request's timeout.
class FrozenTimeTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  APP = <<~RUBY
    run lambda { |env|
      File.write("begun", "") if env["PATH_INFO"] == "/first"
      hold_until("go")
      [200, {}, ["fine"]]
    }
  RUBY
  CONFIG = <<~RUBY
    workers 1
    refork :manual
    timeout 8, grace: 1
    queue_timeout 8
    control "control.sock"
  RUBY
  # Longer than any of these.
  FROZEN = 11

  def test_behind_the_reactor
    server = serve(app: APP, config: CONFIG)
    requests = [begin_request(server, "/first")]
    wait_until { File.exist?(File.join(server.folder, "begun")) }
    requests << begin_request(server, "/second")
    wait_until { waiting?(server) }
    freeze_and_thaw(server)

    assert_equal [200, 200], requests.map(&:value)
    stalled = server.wait_past("monitor.stalled")
    assert_operator stalled["seconds"], :>, FROZEN - 2
    assert_operator stalled["processor"], :<, 1
    assert_empty server.events("request.killed")
  end

  def test_in_direct_mode
    server = serve(app: APP, config: "#{CONFIG}reactor false")
    request = begin_request(server, "/first")
    wait_until { File.exist?(File.join(server.folder, "begun")) }
    freeze_and_thaw(server)

    assert_equal 200, request.value
    assert_empty server.events("request.timed_out")
  end

  # The monitor stops where it is, and goes on from there to look at the deadlines.
  def test_in_the_middle_of_a_turn_of_the_monitor
    stop = "after_worker_exit { Process.kill(:STOP, Process.pid) if $stopped.nil? && ($stopped = true) }"
    server = serve(app: APP, config: "#{CONFIG}workers 2\n#{stop}")
    request = begin_request(server, "/first")
    wait_until { File.exist?(File.join(server.folder, "begun")) }
    server.wait_until_busy(1)
    Process.kill("KILL", server.workers.find { |worker| worker.title.end_with?("idle") }.pid)
    wait_until(message: "the monitor stops") { Pando::Sys::ProcessStat.read(server.pid).state == "T" }
    pause FROZEN
    Process.kill("CONT", server.pid)
    server.wait_past("monitor.stalled")
    server.write("go", "")

    assert_equal 200, request.value
    assert_empty server.events("request.killed")
  end

  private

  def begin_request(server, path) = Thread.new { server.get(path).status }

  # As the server says itself.
  def waiting?(server)
    socket = UNIXSocket.new(File.join(server.folder, "control.sock"))
    socket.write("status\n")
    socket.read.match?(/^queue .*waiting=1/)
  ensure
    socket&.close
  end

  def freeze_and_thaw(server)
    pids = server.processes.map(&:pid)
    pids.each { |pid| Process.kill("STOP", pid) }
    pause FROZEN
    server.write("go", "")
    pids.reverse_each { |pid| Process.kill("CONT", pid) }
  end
end
