# frozen_string_literal: true

require_relative "../bench_helper"
require "support/lab/client"
require "support/lab/traffic"

# What the client sends, and which answers count.
class LabClientTest < Minitest::Test
  def setup
    @listener = TCPServer.new("127.0.0.1", 0)
    @seen = Thread::Queue.new
    @answer = "201 Created"
    @hangs = 0
    @hung = []
    @server = Thread.new { loop { serve(@listener.accept) } }
  end

  def teardown
    @server.kill.join
    [@listener, *@hung].each(&:close)
  end

  def test_a_target_has_headers_and_a_body_of_its_own
    run_one(["POST", "/notes.json", { "Content-Type" => "application/json", "X-Key" => "abc" }, "{}"])
    head, body = @seen.pop

    assert_equal "POST /notes.json HTTP/1.1", head.first
    assert_equal ["Content-Type: application/json"], head.grep(/\AContent-Type/)
    assert_includes head, "X-Key: abc"
    assert_includes head, "X-Lab: 1"
    assert_equal "{}", body
  end

  def test_what_is_not_a_get_sends_a_form_where_it_says_nothing_else
    run_one(["PATCH", "/notes/1"])
    head, body = @seen.pop

    assert_includes head, "Content-Type: application/x-www-form-urlencoded"
    assert_equal "position=7", body
  end

  def test_a_get_has_no_body
    run_one(["GET", "/notes", { "Cookie" => "a=b" }])
    head, body = @seen.pop

    assert_includes head, "Cookie: a=b"
    assert_empty head.grep(/\AContent-/)
    assert_equal "", body
  end

  def test_success_is_any_status_of_200_to_299
    assert_empty run_one(["GET", "/"]).failures

    @answer = "302 Found"
    assert_equal ["/: HTTP/1.1 302 Found"], run_one(["GET", "/"]).failures
  end

  def test_a_request_that_hangs_took_as_long_as_the_client_waits_and_holds_up_no_other
    @hangs = 1
    client = client(["GET", "/"], clients: 2, reply_within: 0.2)
    client.run(4)

    assert_equal ["/: no answer within 0 s"], client.failures
    assert_in_delta 0.2, client.sent.map(&:seconds).max
    assert(client.sent.all?(&:seconds))
  end

  def test_the_client_gives_up_on_a_server_that_answers_nobody
    @hangs = 100
    client = client(["GET", "/"], clients: 2, reply_within: 0.05)

    assert_raises(Bench::Lab::Client::Stuck) { client.run(100) }
    assert_operator client.sent.size, :<, 10
  end

  def test_each_request_to_a_server_that_is_gone_fails
    gone = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    client = Bench::Lab::Client.new(gone, Bench::Lab::Traffic.new([["GET", "/"]]), clients: 4)
    client.run(5000)

    assert_equal [5000, ["/: Errno::ECONNREFUSED"]], [client.failures.size, client.failures.uniq]
    assert_equal [nil], client.sent.map(&:seconds).uniq
  end

  private

  def run_one(target) = client(target, clients: 1).tap { |client| client.run(1) }

  def client(target, **options)
    Bench::Lab::Client.new(@listener.addr[1], Bench::Lab::Traffic.new([target]), **options)
  end

  def serve(socket)
    head = []
    while (line = socket.gets) && line != "\r\n"
      head << line.chomp
    end
    @seen << [head, socket.read(head.grep(/\AContent-Length: /).first.to_s[/\d+/].to_i)]
    return @hung << socket if (@hangs -= 1) >= 0

    socket.write("HTTP/1.1 #{@answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    socket.close
  end
end
