# frozen_string_literal: true

require "test_helper"
require_relative "../unit/http/support/served_queue"

# Answers as they are on the wire: where a body ends, which have none, and what an
# application cannot put into one; in direct mode and behind the reactor.
module AnswersConformance
  Stream = Struct.new(:parts) do
    def each(&block) = parts.each(&block)
  end

  ANSWERS = {
    "/sized" => [200, { "content-type" => "text/plain" }, %w[hel lo]],
    "/stream" => [200, { "content-type" => "text/plain" }, Stream.new(%w[hel lo])],
    "/204" => [204, { "x-a" => "b", "content-length" => "5" }, ["hello"]],
    "/304" => [304, { "etag" => "\"a\"" }, ["hello"]],
    "/205" => [205, {}, ["hello"]],
    "/100" => [100, {}, []], "/101" => [101, {}, []], "/199" => [199, {}, []], "/99" => [99, {}, []],
    "/1000" => [1000, {}, []], "/nil" => [nil, {}, []],
    "/value" => [200, { "x-a" => "b\r\nSet-Cookie: c=d" }, []], "/value-cr" => [200, { "x-a" => "b\rc" }, []],
    "/value-nul" => [200, { "x-a" => "b\0c" }, []], "/name" => [200, { "x-a\r\nset-cookie" => "c=d" }, []],
    "/name-space" => [200, { "x a" => "b" }, []], "/name-colon" => [200, { "x-a: b\r\nx" => "c" }, []],
    "/name-empty" => [200, { "" => "c" }, []],
    "/own" => [200, { "connection" => "upgrade", "status" => "404", "keep-alive" => "timeout=9" }, ["a"]]
  }.freeze
  APP = lambda do |env|
    answer = ANSWERS[env["PATH_INFO"]] || [200, {}, [env["rack.input"].read]]
    [answer[0], answer[1].dup, answer[2]]
  end

  def setup
    @served = mode.new(APP).start
  end

  def teardown
    assert_equal "hello", @served.get("/sized").body
  ensure
    @served.stop
  end

  # All that comes to these requests, to the last byte, after the client has ended its side.
  def wire(*requests)
    socket = @served.connect
    socket.write(*requests)
    socket.shutdown(:WR)
    socket.wait_readable(90)
    socket.read
  ensure
    socket&.close
  end

  def request(path, verb: "GET", version: "1.1", fields: "")
    "#{verb} #{path} HTTP/#{version}\r\nHost: a\r\n#{fields}\r\n"
  end

  def parts(...) = wire(request(...)).split("\r\n\r\n", 2)

  def test_a_body_of_known_length
    head, body = parts("/sized")

    assert_equal [["content-length: 5"], "hello"], [head.scan(/^(?:content-length|transfer-encoding): \w+/i), body]
    assert_match(/^date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT/i, head)
  end

  def test_a_body_of_unknown_length
    head, body = parts("/stream")

    assert_match(/^transfer-encoding: chunked/i, head)
    refute_match(/^content-length/i, head)
    assert_equal "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", body
  end

  # RFC 9112 sections 6.1 and 6.3
  def test_http_1_0_knows_no_chunks
    head, body = parts("/stream", version: "1.0", fields: "Connection: keep-alive\r\n")

    assert_match(%r{\AHTTP/1\.1 200 .*^connection: close}mi, head)
    refute_match(/^transfer-encoding/i, head)
    assert_equal "hello", body
  end

  # RFC 9110 section 9.3.2
  def test_head
    %w[/sized /stream /304 /echo].each do |path|
      get, = parts(path)
      head, body = parts(path, verb: "HEAD")
      assert_equal "", body, path
      assert_equal fields_of(get), fields_of(head), "the fields are those of GET"
    end
  end

  # But for those that come of making the body.
  def fields_of(head)
    head.lines(chomp: true).grep_v(/^(date|content-length|transfer-encoding):/i)
  end

  # RFC 9110 sections 15.3.5, 15.4.5, 8.6 and 15.3.6
  def test_statuses_without_a_body
    head, body = parts("/204")
    assert_equal [[], ""], [head.scan(/^(?:content-length|transfer-encoding)/i), body]
    head, body = parts("/304")
    assert_equal [[], ""], [head.scan(/^transfer-encoding/i), body]
    head, body = parts("/205")
    assert_equal [["content-length: 0"], ""], [head.scan(/^content-length: \d+/i), body]
  end

  %w[/100 /101 /199 /99 /1000 /nil].each do |path|
    define_method("test_status_#{path.delete("/")}_is_none_for_an_application") do
      assert_match(%r{\AHTTP/1\.1 500 }, wire(request(path)))
    end
  end

  %w[/value /value-cr /value-nul /name /name-space /name-colon /name-empty].each do |path|
    define_method("test_nothing_is_injected_by_#{path.delete("/")}") do
      answer = wire(request(path))

      assert_match(%r{\AHTTP/1\.1 500 }, answer)
      refute_match(/set-cookie|x-a|x a|\0/i, answer)
    end
  end

  # RFC 9110 section 7.6.1
  def test_fields_of_the_connection_are_the_servers_own
    head, body = parts("/own")

    refute_match(/upgrade|404|timeout=9/, head)
    assert_equal [["content-length: 1"], "a"], [head.scan(/^content-length: \d+/i), body]
  end

  EXPECT = { verb: "POST", fields: "Expect: 100-continue\r\nContent-Length: 5\r\n" }.freeze

  # RFC 9110 section 10.1.1
  def test_100_continue
    socket = @served.connect
    socket.write(request("/echo", **EXPECT))
    assert_equal "HTTP/1.1 100 Continue\r\n\r\n", socket.readpartial(100)
    socket.write("hello")
    socket.shutdown(:WR)

    assert_match(%r{\AHTTP/1\.1 200 .*\r\n\r\nhello\z}m, socket.read)
  ensure
    socket&.close
  end

  def test_100_continue_is_not_said_where_nobody_waits_or_understands
    bodiless = { fields: "Expect: 100-continue\r\n" }
    [[EXPECT, "hello"], [EXPECT.merge(version: "1.0"), "hello"], [bodiless, ""]].each do |how, body|
      assert_match(%r{\AHTTP/1\.1 200 .*\r\n\r\n#{body}\z}m, wire(request("/echo", **how), body))
    end
  end
end

class DirectAnswersTest < Minitest::Test
  include AnswersConformance

  def mode = HTTPSupport::ServedWork
end

class ReactorAnswersTest < Minitest::Test
  include AnswersConformance

  def mode = HTTPSupport::ServedQueue

  # A byte too many in any of them would be read as the beginning of the next.
  def test_one_after_another_on_a_connection
    asked = [%w[HEAD /sized], %w[GET /204], %w[HEAD /stream], %w[GET /304], %w[HEAD /205], %w[GET /stream],
             %w[GET /205], %w[HEAD /echo], %w[GET /sized]]
    answers = wire(*asked.map { |verb, path| request(path, verb: verb) }).split(%r{(?=HTTP/1\.1 \d{3} )})

    assert_equal(%w[200 204 200 304 205 200 205 200 200], answers.map { |answer| answer[9, 3] })
    assert_equal(["", "", "", "", "", "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", "", "", "hello"],
                 answers.map { |answer| answer.split("\r\n\r\n", 2).last })
  end
end
