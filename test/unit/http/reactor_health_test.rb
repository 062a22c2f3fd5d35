# frozen_string_literal: true

require "test_helper"
require_relative "support/reactor_case"

# What the reactor says of the server's health, by itself: no worker ever takes these requests.
class HTTPReactorHealthTest < Minitest::Test
  include HTTPSupport::ReactorCase

  WELCOME = 8
  UNWELCOME = 9
  WELL = "OK\n"

  def stage(**settings) = super(ready_path: "/up", live_path: "/live", **settings)
  def told(kind) = @stage.ok("record", kind, 0, 0)

  def asking(path = "/up", verb: "GET", version: "1.1", fields: "", body: "")
    "#{verb} #{path} HTTP/#{version}\r\nhost: a\r\n#{fields}\r\n#{body}"
  end

  # On a connection of its own.
  def answer(path = "/up", **how) = request(asking(path, fields: "connection: close\r\n", **how)).read
  def status(...) = answer(...)[%r{\AHTTP/1\.1 (\d{3}) }, 1].to_i

  # It has been heard when the answer changes.
  def wait_for_status(expected, ...)
    found = nil
    wait_until(message: -> { "#{expected}, not #{found}" }) { (found = status(...)) == expected }
  end

  def test_not_ready_before_the_monitor_says_so
    stage
    assert_equal [503, 200], [status, status("/live")]
    told(WELCOME)
    wait_for_status(200)
    told(UNWELCOME)
    wait_for_status(503)

    assert_equal 200, status("/live")
    counts("requests" => 0)
  end

  def test_ready_without_a_worker_that_has_time
    stage
    told(WELCOME)
    2.times { request(GET) && @stage.take(0) }
    3.times { request(GET) }

    wait_for_status(200)
  end

  def test_what_the_answers_look_like
    stage
    unwell = answer
    counts("health_well" => 0, "health_unwell" => 1)
    told(WELCOME)
    wait_for_status(200)
    well = answer

    assert_match(/\AHTTP\S+ 200 OK\r\n.*^cache-control: no-store\r\ncontent-length: 3\r\ndate: \S/m, well)
    assert well.end_with?("\r\n\r\nOK\n")
    assert_match(/^retry-after: 7\r\n.*^connection: close\r\n\r\nService Unavailable\n\z/m, unwell)
    refute_match(/retry-after/, well)
    counts("health_well" => 2, "requests" => 0, "responses" => 0)
  end

  def test_a_connection_is_kept
    stage
    told(WELCOME)
    wait_for_status(200)
    client = connect
    3.times do
      client.write(asking)
      assert_equal WELL, body_of(client)
    end
    client.write(GET)
    @stage.answer(@stage.take(0))

    assert_equal "hello", body_of(client)
  end

  def test_sent_ahead_among_others_in_order
    stage
    told(WELCOME)
    wait_for_status(200)
    client = request(asking + asking("/a") + asking("/live") + asking("/b") + asking)
    2.times { @stage.take(0).then { |taken| @stage.answer(taken, taken.path) } }

    assert_equal [WELL, "/a", WELL, "/b", WELL], Array.new(5) { body_of(client) }
  end

  def test_head_has_no_body
    stage
    head = answer(verb: "HEAD")

    assert_match(/^content-length: \d+\r\n/, head)
    assert head.end_with?("\r\n\r\n")
  end

  def test_an_old_client
    stage
    assert_match(/^connection: close\r$/, request("GET /up HTTP/1.0\r\n\r\n").read)
    client = request("GET /up HTTP/1.0\r\nconnection: keep-alive\r\n\r\n" * 2)
    2.times do
      assert_match(/^connection: keep-alive\r$/, Timeout.timeout(20) { client.readline("\r\n\r\n") })
      client.readline
    end
  end

  def test_a_query_and_a_whole_url_are_as_good
    stage
    told(WELCOME)
    wait_for_status(200)

    assert_equal [200, 200], [status("/up?from=lb"), status("http://a/up")]
  end

  def test_everything_else_is_the_applications
    stage
    ["GET /up/", "GET /UP", "GET /u", "GET /upper", "GET //up", "GET /%75p", "POST /up", "OPTIONS /up"].each do |line|
      client = request("#{line} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
      taken = @stage.take(0)
      assert_equal line, taken.data[/\A\S+ \S+/]
      @stage.answer(taken)
      assert client.read.end_with?("hello")
    end
    counts("health_well" => 0, "health_unwell" => 0)
  end

  # What it sends is not looked at, and never taken for a request.
  def test_a_body_ends_the_connection
    stage
    hidden = asking("/smuggled")
    fields = "content-length: #{hidden.bytesize}\r\nexpect: 100-continue\r\n"
    [asking(fields: fields, body: hidden),
     asking(fields: "transfer-encoding: chunked\r\n", body: "5\r\nhello\r\n0\r\n\r\n#{hidden}")].each do |text|
      assert_equal ["HTTP/1.1 503", "connection: close"], request(text).read.scan(%r{^HTTP/1.1 \d+|^connection: close})
    end

    assert_nil @stage.take(0, patience: 0)
  end

  def test_malformed_is_malformed
    stage

    assert_match(/\AHTTP\S+ 400 /, request("GET /up HTTP/1.1\r\n\r\n").read)
    assert_match(/\AHTTP\S+ 400 /, request(asking(fields: "content-length: 1\r\ntransfer-encoding: chunked\r\n")).read)
  end

  def test_requests_of_a_connection_are_limited
    stage(max_requests: 2)

    assert_equal 1, request(asking * 3).read.scan(/^connection: close/).size
  end

  def test_not_ready_while_draining
    stage
    told(WELCOME)
    wait_for_status(200)
    client = request(GET)
    taken = @stage.take(0)
    head = request("GET /up HTTP/1.1\r\nho")
    count("connections", 2)
    @stage.ok("drain")
    wait_until { refused? }
    head.write("st: a\r\n\r\n")

    assert_match(/\AHTTP\S+ 503 .*^connection: close\r$/m, head.read)
    @stage.answer(taken)
    assert client.read.end_with?("hello")
  end

  def test_not_alive_when_the_monitor_has_not_been_heard_of
    stage(monitor_silence: 200)
    wait_for_status(503, "/live")
    wait_until do
      told(WELCOME)
      status("/live") == 200
    end

    wait_for_status(503, "/live")
    assert_equal 200, status("/up")
  end

  def test_without_a_path_nothing_is_answered
    @stage = HTTPSupport::ReactorStage.new(@listener, queue_timeout: 100)
    @stage.open(0)
    client = request(asking)

    assert_equal "/up", @stage.take(0).path
    client.close_write
  end

  def test_records_are_checked
    stage
    @stage.ok("record", WELCOME, 0, 0)
    @stage.ok("record", 99, 0, 0)

    assert_equal 3, @stage.wait
  end

  private

  def refused?
    connect && false
  rescue Errno::ECONNREFUSED
    true
  end
end
