# frozen_string_literal: true

require "test_helper"
require "open3"
require "pando/cli/control_client"
require "support/balancer"
require "support/kept_connection"
require "support/servers"

# Promise: behind a load balancer that looks at the server's health, neither a drain nor a stop is felt by anybody.
class DrainTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  # /held answers when the file "go" is there.
  APP = <<~'RUBY'
    run lambda { |env|
      hold_until("go") if env["PATH_INFO"] == "/held"
      next [200, {}, ->(stream) { stream.write("x") and sleep }] if env["PATH_INFO"] == "/stream"
      [200, { "content-type" => "text/plain" }, ["pid #{Process.pid}"]]
    }
  RUBY
  LONG = "drain_delay 300" # ended by a second TERM

  def start(config = "")
    serve(app: APP, config: "workers 2\nrefork :manual\nhealth \"/up\", live: \"/live\"\n" \
                            "control \"control.sock\"\n#{config}")
      .tap { |server| wait_until { server.get("/up").status == 200 } }
  end

  def announce(server, signal = "TERM")
    server.wait_for("drain.started", reason: signal) { server.signal(signal) }
  end

  def assert_ended(server) = assert_equal(0, server.wait_for_exit.exitstatus)

  def test_nobody_feels_it
    servers = Array.new(2) { start(LONG) }
    leaving, staying = servers
    balancer = Support::Balancer.start(servers)
    balancer.wait_for_more(200)
    draining = Thread.new { ask(leaving, "drain") }
    balancer.wait_until_in_rotation([staying])
    assert_equal ["ok", "the server is in rotation again"], ask(leaving, "drain", undo: true)
    assert_match(/put the server back/, draining.value.last)
    balancer.wait_until_in_rotation(servers)
    balancer.wait_for_more(200)
    announce(leaving)
    balancer.wait_until_in_rotation([staying])
    leaving.wait_for("monitor.stopping") { leaving.signal_again("TERM") }
    assert_ended(leaving)
    balancer.wait_for_more(50)

    assert_equal [200], balancer.stop.keys
    assert_empty(servers.flat_map { |server| server.events.select { |event| event["level"] == "error" } })
  end

  def test_what_comes_in_the_delay_is_served_as_ever
    server = start(LONG)
    kept = Support::KeptConnection.new(server.connect)
    kept.ask("/").answer
    announce(server)
    wait_until { server.get("/up").status == 503 }
    answers = [kept.ask("/").answer, Support::KeptConnection.new(server.connect).ask("/").answer]
    assert_equal([[200, false]] * 2, answers.map { |answer| [answer.status, answer.last?] })
    assert_equal 200, server.get("/live").status
    %w[HUP USR2 QUIT].each { |signal| server.signal(signal) } # there is no more to come
    states = []
    ask(server, "status") { |_, pairs| states << pairs["state"] }
    assert_equal ["draining", ["failed", "the server is stopping"]], [states.first, ask(server, "refork")]
    server.wait_for("monitor.stopping", reason: "TERM") { server.signal_again("TERM") }

    assert_predicate kept, :ended?
    assert_ended(server)
    assert_empty(server.events.map { |event| event["event"] } & %w[reload.started refork.started])
  ensure
    kept&.close
  end

  def test_int_does_without
    server = start(LONG)
    announce(server)
    server.wait_for("monitor.stopping", reason: "INT") { server.signal("INT") }

    assert_ended(server)
  end

  def test_the_stop_follows_by_itself
    server = start("drain_delay 0.3")
    events = []
    outcome = ask(server, "stop") { |_, event| events << event["name"] }

    assert_equal ["ok", "the server has stopped"], outcome
    assert_equal %w[drain.started monitor.stopping], events.first(2)
    assert_in_delta 0.3, server.wait_past("drain.started", reason: "pando stop")["seconds"], 0.1
    assert_ended(server)
  end

  def test_pando_drain_waits_for_silence
    server = start
    text, progress, status = pando("drain", server: server)
    assert_equal ["no more requests arrive\n", 0], [text, status]
    assert_match(/drain\.started reason="pando drain"/, progress)
    assert_equal 503, server.get("/up").status
    held = Thread.new { server.get("/held").status }
    server.wait_until_busy(1)
    _, complaint, status = pando("drain", "--wait", "1.3", server: server)
    server.write("go", "")

    assert_equal 1, status
    assert_match(/^pando: there was no answer within 1.3 s; the server continues/, complaint)
    assert_equal [200, 503], [held.value, server.get("/up").status], "it stays out of rotation"
    assert_equal 0, pando("drain", "--undo", server: server).last
    assert_equal ["failed", "the server was not draining"], ask(server, "drain", undo: true)
  end

  # A stream may last for ever.
  def test_pando_drain_does_not_wait_for_streams
    server = start
    stream = server.connect
    stream.write("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
    received = +""
    received << stream.readpartial(1000) until received.include?("1\r\nx\r\n")

    assert_equal ["no more requests arrive\n", 0], pando("drain", "--wait", "20", server: server).values_at(0, 2)
    assert_nil stream.wait_readable(0), "it goes on"
  ensure
    server.kill
  end

  def test_pando_drain_needs_a_health_check
    server = serve(config: "workers 1\ncontrol \"control.sock\"")

    assert_equal ["failed", "the setting `health` is off: load balancers would not notice"], ask(server, "drain")
  end

  def test_the_delay_without_a_reactor
    server = serve(config: "workers 1\nreactor false\n#{LONG}")
    announce(server)
    assert_equal 200, server.get("/").status
    server.wait_for("monitor.stopping") { server.signal_again("TERM") }

    assert_ended(server)
  end

  private

  # What `pando WORD` asks.
  # @return [Array(String, String)] "ok" or "failed", and what was said
  def ask(server, word, **pairs, &block)
    client = Pando::CLI::ControlClient.new(File.join(server.folder, "control.sock"))
    outcome, said = client.ask(word, pairs, timeout: 60) { |*record| block&.call(*record) }
    [outcome, said["text"] || said["reason"]]
  end

  def pando(*arguments, server:)
    command = Support::Checkout.pando(*arguments, "-C", server.folder, "-c", "pando.rb")
    output, complaint, status = Open3.capture3(*command)
    [output, complaint, status.exitstatus]
  end
end
