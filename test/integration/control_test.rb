# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "socket"
require "support/servers"

# The running server is asked and told through its control socket.
class ControlTest < Minitest::Test
  include Support::Servers

  APP = <<~RUBY
    run lambda { |env|
      File.write("busy", "") if env["PATH_INFO"] == "/gate"
      hold_until("open") if env["PATH_INFO"] == "/gate"
      [200, {}, ["done"]]
    }
  RUBY

  def setup
    @server = serve(app: APP, config: "workers 2\nrefork :manual\ncontrol \"control.sock\"\n" \
                                      "service(:mailer) { |service| nil until service.wait(60) }")
  end

  def test_status_tells_what_each_process_does
    @server.wait_past("service.ready", name: "mailer")
    gate = Thread.new { @server.get("/gate") }
    wait_until { File.exist?(File.join(@server.folder, "busy")) }
    report = JSON.parse(pando("status", "--format", "json").first)
    @server.write("open", "")

    assert_equal("done", gate.value.body)
    assert_equal(["serving", 2, 2, @server.pid], report["server"].values_at("state", "workers", "ready", "pid"))
    assert_equal([1, 0], report["queue"].values_at("connections", "waiting"))
    processes = report["processes"]
    assert_equal(%w[monitor reactor mold worker worker service], processes.map { |process| process["role"] })
    assert_equal([0, 1], workers(processes).map { |worker| worker["slot"] })
    assert_equal("mailer", processes.last["name"])
    assert_equal(["GET /gate"], processes.filter_map { |process| process["job"] })
    processes.each { |process| assert_operator(process["private"], :<=, process["pss"], process) }
  end

  def test_status_is_a_table
    text, _, status = pando("status")

    assert_equal(0, status)
    assert_match(/\Apando \S+, serving for .*: 2 of 2 workers ready, 0 reforks since the last cold boot$/, text)
    assert_match(/^worker 1 +0 +\d+ +idle +0 +[\d.]+ MiB +[\d.]+ MiB$/, text)
    assert_match(/^generation 0 is current \(boot\)/, text)
  end

  def test_refork_waits_for_the_rollout
    text, progress, status = pando("refork")

    assert_equal([0, "every worker runs generation 1"], [status, text[/\A[^,]*/]])
    assert_match(/worker\.ready slot=1 generation=1/, progress)
    assert(wait_until { @server.workers.map { |worker| worker.title[/gen \d+/] } == ["gen 1"] * 2 })
  end

  def test_refork_tells_why_not
    fixed = serve(config: "workers 1\nrefork false\ncontrol \"control.sock\"")
    text, complaint, status = pando("refork", server: fixed)

    assert_equal([1, ""], [status, text])
    assert_match(/^pando: refused: reforking is switched off$/, complaint)
  end

  def test_scale_waits_for_the_workers
    assert_equal(["4 workers are ready\n", 0], pando("scale", "4").values_at(0, 2))
    assert_equal(4, @server.workers.size)
    assert_equal(["1 worker is ready\n", 0], pando("scale", "1").values_at(0, 2))
    assert_equal(1, @server.workers.size)
  end

  def test_scale_knows_its_limits
    assert_match(/there can be 1 to \d+ workers: a server has 1024 threads at most/, pando("scale", "0")[1])
    assert_equal([2, 2], [pando("scale", "many"), pando("scale")].map(&:last))
    assert_equal(2, pando("stop", "--how", "softly").last)
    assert_equal(2, @server.workers.size)
  end

  def test_stop_waits_for_the_end
    text, _, status = pando("stop")

    assert_equal(["the server has stopped\n", 0], [text, status])
    assert_equal(0, @server.wait_past("monitor.stopped")["status"])
    refute_path_exists(socket)
    assert_equal(2, pando("status").last, "nobody is there any more")
  end

  def test_a_stop_at_once_overtakes_a_graceful_one
    Thread.new { @server.get("/gate") }.report_on_exception = false
    wait_until { File.exist?(File.join(@server.folder, "busy")) }
    patient = Thread.new { pando("stop") }
    @server.wait_past("monitor.stopping")

    assert_equal(0, pando("stop", "--how", "at_once").last)
    assert_equal(0, patient.value.last)
  end

  def test_the_socket_is_its_owners
    assert_equal(0o600, File.stat(socket).mode & 0o777)
  end

  def test_clients_that_misbehave_harm_nobody
    hostile = Array.new(50) { UNIXSocket.new(socket) } # more than it talks with
    hostile.each { |client| write(client, Random.bytes(2000)) }
    UNIXSocket.open(socket) { |client| write(client, "refork\n") } # gone before its answer
    UNIXSocket.open(socket) { |client| write(client, "reload why=#{"x" * 9000}\n") }

    assert_equal(0, pando("status").last)
    assert_empty(@server.events("control.failed"))
    assert_equal("done", @server.get("/").body)
  ensure
    hostile&.each(&:close)
  end

  def test_a_second_server_does_not_take_the_socket_away
    second = File.join(@server.folder, "second.rb")
    File.write(second, "listen \"127.0.0.1:0\"\ncontrol \"control.sock\"\n")
    _, complaint, status = run_pando("-C", @server.folder, "-c", second)

    assert_equal(1, status)
    assert_match(/cannot listen on unix:\S+control.sock: another process listens there/, complaint)
    assert_equal(0, pando("status").last)
  end

  def test_the_folder_of_the_default_socket_is_made
    server = serve(config: "workers 1")
    output, complaint, status = pando("status", server: server, path: nil)

    assert_equal(["", 0], [complaint, status])
    assert_includes(output, "serving")
    assert_empty(server.events("control.unavailable"))
  end

  def test_the_second_server_of_a_folder_names_the_first
    server = serve(config: "workers 1")
    second = serve(folder: server.folder, listen: "127.0.0.1:0", arguments: %w[--log-format json])

    assert_match(/another Pando of this folder runs \(pid #{server.pid}\)/,
                 second.events("control.unavailable").first["reason"])
  end

  def test_events_are_followed_until_the_server_ends
    all, some = [["-f"], ["-f", "--format", "json", "worker.", "mold.retired"]].map do |arguments|
      follower("events", *arguments)
    end
    @server.wait_for("worker.ready") { Process.kill("KILL", @server.workers.first.pid) }
    @server.stop
    text, told = [all, some].map { |thread| thread.value.first }
    lines = told.lines.map { |line| JSON.parse(line) }

    assert_match(/ pando ERROR worker\.lost slot=\d generation=0 pid=\d+ reason="signal KILL"/, text)
    assert_match(/ pando monitor\.stopped pid=#{@server.pid} status=0\n\z/, text)
    assert_equal([["worker.lost", "error"]], lines.first(1).map { |line| line.values_at("event", "level") })
    assert_empty(lines.map { |line| line["event"] }.grep_v(/\Aworker\./))
    assert_equal([0, 0], [all, some].map { |thread| thread.value.last })
  end

  def test_a_worker_is_killed_and_replaced
    victim = @server.workers.find { |worker| worker.title.include?("worker 1") }.pid
    text, progress, status = pando("kill", "1")

    assert_equal([0, "the worker in slot 1 (pid #{victim}) was killed; another one takes its place\n"], [status, text])
    assert_match(/worker\.killed slot=1 generation=0 pid=#{victim} reason="pando kill: signal KILL"/, progress)
    @server.wait_past("worker.spawning", slot: 1)

    assert_equal(["pando: there is no worker in slot 7\n", 1], pando("kill", "7").last(2))
    assert_equal([2, 2], [pando("kill").last, pando("kill", "one").last])
  end

  def test_a_kill_of_another_worker_than_was_seen_is_refused
    UNIXSocket.open(socket) do |client|
      client.puts("kill slot=1 pid=1")

      assert_match(/\Afailed reason=there%20is%20no%20worker%20with%20pid%201%20in%20slot%201/, client.read)
    end
    assert_empty(@server.events("worker.killed"))
  end

  def test_events_without_the_flag_is_wrong_usage
    assert_equal(2, pando("events").last)
  end

  def test_status_is_shown_again_and_again
    options = ["-C", @server.folder, "--control", "control.sock"]
    IO.popen(Support::Checkout.pando("status", "--watch", "0.1", *options)) do |io|
      3.times { nil until io.gets.start_with?("pando ") }
      Process.kill("KILL", io.pid)
    end

    assert_equal(2, pando("status", "--watch", "0").last)
  end

  private

  # @return [Thread] once the monitor knows of it
  def follower(*arguments)
    command = Support::Checkout.pando(*arguments, "-C", @server.folder, "--control", "control.sock")
    _, output, complaint, process = Open3.popen3(*command)
    assert_match(/\Apando: following the events of the server at /, complaint.gets)
    Thread.new { [output.read, process.value.exitstatus] }
  end

  def socket = File.join(@server.folder, "control.sock")
  def workers(processes) = processes.select { |process| process["role"] == "worker" }

  # @return [Array(String, String, Integer)] what it wrote, what it complained of, its exit status
  def pando(*arguments, server: @server, path: "control.sock")
    run_pando(*arguments, "-C", server.folder, *(["--control", path] if path))
  end

  def run_pando(*arguments)
    output, complaint, status = Open3.capture3(*Support::Checkout.pando(*arguments))
    [output, complaint, status.exitstatus]
  end

  def write(client, bytes)
    client.write(bytes)
  rescue SystemCallError
    nil # it was shown the door
  end
end
