# frozen_string_literal: true

require "test_helper"
require "support/servers"

# Promise: what does not yield to its soft timeout is killed by the monitor, which says what it was.
class HardTimeoutTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  APP = <<~'RUBY'
    require "openssl"

    # Minutes in C, which looks for no signal meanwhile.
    def derive
      OpenSSL::KDF.pbkdf2_hmac("secret", salt: "salt", iterations: 1_000_000_000, length: 32, hash: "sha256")
    end

    run lambda { |env|
      case env["PATH_INFO"]
      when "/never" then Thread.handle_interrupt(Object => :never) { sleep }
      when "/derive" then derive
      when "/stopped" then Process.kill(:STOP, Process.pid)
      end
      [200, {}, ["pid #{Process.pid}"]]
    }
  RUBY
  CONFIG = <<~RUBY
    workers 2
    refork :manual
    stop_timeout 20
    after_worker_hard_timeout do |server, worker|
      File.write("hook", [server.class, Process.pid, worker.pid, worker.slot, worker.generation].join(" "))
    end
  RUBY

  def teardown
    @socket&.close
    super
  end

  def test_a_request_that_puts_all_interrupts_off = assert_killed("/never")
  def test_a_request_that_computes_in_c = assert_killed("/derive")
  def test_a_process_that_was_stopped = assert_killed("/stopped")

  # Its request's time stands still meanwhile; the client's has limits, which it no longer sees to.
  def test_a_process_that_was_stopped_while_it_waits_for_its_client
    @server = serve(app: <<~RUBY, config: <<~CONFIG)
      run lambda { |env|
        env["rack.input"].read(1)
        File.write("reading", Process.pid.to_s)
        [200, {}, [env["rack.input"].read.to_s]]
      }
    RUBY
      workers 1
      refork :manual
      timeout 60, grace: 0.5
      body_timeout 4
      write_timeout 4
      stream_bodies "/up"
    CONFIG
    @socket = @server.connect
    @socket.write("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nx")
    reading = File.join(@server.folder, "reading")
    wait_until(message: "a worker that reads") { File.exist?(reading) && !File.empty?(reading) }
    pid = @server.workers.first.pid
    wait_until_asleep(pid)
    Process.kill(:STOP, pid)

    assert_equal("POST /up", @server.wait_past("request.killed", pid: pid)["request"])
    @server.wait_past("worker.killed", pid: pid)
  end

  def test_tells_the_hook_in_the_monitor
    event = killed("/never")
    @server.wait_past("worker.killed")

    assert_equal(["Pando::Server", @server.pid, *event.values_at("pid", "slot", "generation")].join(" "),
                 File.read(File.join(@server.folder, "hook")))
  end

  def test_holds_in_a_worker_that_is_being_replaced
    start("timeout 8, grace: 0.5")
    busy = begin_request("/never")
    2.times { @server.get("/") } # by the other one, which is the better mold now: when this is answered, one is counted
    @server.wait_for("worker.leaving", pid: busy.pid) { @server.signal("USR2") }

    assert_equal("GET /never", @server.wait_past("request.killed")["request"])
  end

  def test_holds_while_the_server_stops
    start("timeout 2, grace: 0.5")
    begin_request("/never")
    @server.wait_for("monitor.stopping") { @server.signal("TERM") }
    event = @server.wait_past("request.killed")

    assert_operator(event["seconds"], :<, 10)
    assert_equal(0, @server.wait_for_exit.exitstatus)
  end

  private

  def start(timeout)
    @server = serve(app: APP, config: "#{timeout}\n#{CONFIG}")
  end

  def ask(path)
    @socket = @server.connect
    @socket.write("GET #{path}?token=secret HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
  end

  # @return [ProcTree::Entry] the worker that is busy with it
  def begin_request(path)
    ask(path)
    wait_until(message: "a busy worker") { @server.workers.find { |worker| worker.title.end_with?("busy") } }
  end

  # It has nothing else to do than to wait.
  def wait_until_asleep(pid)
    looks = 0
    wait_until(message: "a worker that waits") do
      asleep = File.read("/proc/#{pid}/stat")[/\) (\w)/, 1] == "S"
      (looks = asleep ? looks + 1 : 0) > 10
    end
  end

  def killed(path)
    start("timeout 0.3, grace: 0.5")
    @server.wait_for("request.killed") { ask(path) }
  end

  def assert_killed(path)
    event = killed(path)
    farewell = @server.wait_past("worker.killed", pid: event["pid"])

    assert_equal("GET #{path}", event["request"])
    assert_operator(event["seconds"], :>=, 0.8)
    assert_equal("GET #{path}", farewell["request"])
    assert_includes(farewell["reason"], "hard timeout")
    assert_match(/ 504 /, @socket.gets)
    assert_healed(event)
    refute_includes(@server.output, "secret")
    assert_equal([farewell], @server.events.select { |one| one["level"] == "error" })
  end

  def assert_healed(event)
    wait_until(message: "a new worker") do
      @server.events("worker.ready").any? { |ready| ready["slot"] == event["slot"] && ready["time"] > event["time"] }
    end
    assert_equal(200, @server.get("/").status)
  end
end
