# frozen_string_literal: true

require "test_helper"
require "support/servers"

# Too much to do, as clients and the log see it.
class OverloadTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  APP = <<~RUBY
    run lambda { |env|
      raise "boom" if env["PATH_INFO"] == "/raise"

      hold_until("go") if env["PATH_INFO"] == "/held"
      [200, { "content-type" => "text/plain" }, [env["pando.queue_time"].inspect]]
    }
  RUBY

  def overloaded(config)
    @server = serve(app: APP, config: "workers 1\nrefork false\nretry_after 9\n#{config}")
  end

  def ask(path)
    @server.connect.tap { |socket| socket.write("GET #{path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") }
  end

  def test_a_full_queue
    overloaded("max_queue 1")
    held = ask("/held")
    @server.wait_until_busy(1)
    waiting = [ask("/"), ask("/")]
    refused = IO.select(waiting, nil, nil, 20).first.first
    assert_match(%r{\AHTTP/1.1 503 .*\r\nretry-after: 9\r\n.*\r\nconnection: close\r\n}m, refused.read)
    shed = @server.wait_past("requests.shed")
    assert_equal [1, "max_queue (1)", "warn", "GET /held"], shed.values_at("count", "reason", "level", "busy")

    @server.write("go", "")
    assert((waiting - [refused] + [held]).all? { |socket| socket.read.start_with?("HTTP/1.1 200 ") })
  end

  SELF = <<~RUBY
    require "socket"
    run(lambda do |env|
      next [200, {}, ["up"]] unless env["PATH_INFO"] == "/itself"

      UNIXSocket.open("pando.sock") do |socket|
        socket.write("GET /up HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n\\r\\n")
        [200, {}, [socket.read]]
      end
    end)
  RUBY

  def test_an_app_that_waits_for_itself_is_told_of_in_development
    @server = serve(app: SELF, arguments: %w[-e development], config: "log_level :info")
    ask("/itself")
    stalled = @server.wait_past("queue.stalled")

    assert_equal ["warn", 1, "GET /itself"], stalled.values_at("level", "waiting", "busy")
    assert_match(/WEB_CONCURRENCY=2/, stalled["advice"])
  end

  def test_a_slow_queue
    overloaded("queue_timeout 2") # from a quarter of it on, waiting is an event
    held = ask("/held")
    @server.wait_until_busy(1)
    assert_match(%r{\AHTTP/1.1 503 }, ask("/").read)
    assert_equal "queue_timeout (1)", @server.wait_past("requests.shed")["reason"]
    assert_operator @server.wait_past("queue.delayed")["p99"], :>=, 0.5

    @server.write("go", "")
    held.read
    @server.wait_past("queue.recovered")
  end

  # @return [String] what the reactor has counted up to the end of its last turn
  def queue
    UNIXSocket.open(File.join(@server.folder, "control.sock")) do |socket|
      socket.write("status\n")
      socket.read[/^queue .*/].to_s
    end
  end

  def test_what_a_dead_reactor_held
    overloaded("control \"control.sock\"")
    idle = @server.connect
    idle.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    idle.readpartial(1000)
    held = ask("/held")
    @server.wait_until_busy(1)
    wait_until(message: "the reactor's own word for it") { queue.start_with?("queue connections=2 idle=1 ") }
    lost = @server.wait_for("reactor.lost") { Process.kill("KILL", @server.wait_past("reactor.ready")["pid"]) }

    assert_equal [2, 1], lost.values_at("connections", "requests")
    assert_equal ["", ""], [idle, held].map(&:read)
    @server.write("go", "")
  end

  def test_refusals_and_the_time_in_the_queue
    overloaded("")
    socket = @server.connect
    socket.write("nonsense\r\n\r\n")
    assert_match(%r{\AHTTP/1.1 400 }, socket.read)
    assert_equal "malformed (1)", @server.wait_past("requests.refused")["reason"]

    assert_includes 0.0..10.0, Float(@server.get("/").body)
    assert_includes 0.0..10.0, @server.wait_for("request.failed") { @server.get("/raise") }["queued"]
  end
end
