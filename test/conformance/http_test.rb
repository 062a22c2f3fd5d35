# frozen_string_literal: true

require "test_helper"
require_relative "../unit/http/support/served_queue"

# Malformed, oversized, slow and cut-off requests over real sockets: each gets the
# right status or a close, its client reads all of the answer, and afterwards the
# same worker serves the next one, in direct mode and behind the reactor. The finer
# points of syntax are in test/unit/http/parser*_test.rb.
module HTTPConformance
  APP = lambda do |env|
    [200, { "content-type" => "text/plain" }, ["#{env["REQUEST_METHOD"]} #{env["rack.input"].read.bytesize}"]]
  end

  def setup
    @served = mode.new(APP).start
  end

  def teardown
    assert_equal "GET 0", @served.get.body
  ensure
    @served.stop
  end

  def with(**settings)
    @served.stop
    @served = mode.new(APP, **settings).start
  end

  # bytes => status
  HEAD = "Host: a\r\n"
  CASES = {
    "nothing_but_empty_lines" => [400, "\r\n\r\n\r\n\r\n"],
    "garbage" => [400, "\xFF\xFE\0\x01\r\n\r\n".b],
    "tls" => [400, "\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03".b],
    "http_0_9" => [400, "GET /\r\n"],
    "lf_only" => [400, "GET / HTTP/1.1\nHost: a\n\n"],
    "no_host" => [400, "GET / HTTP/1.1\r\n\r\n"],
    "two_hosts" => [400, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"],
    "host_with_path" => [400, "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"],
    "folded_field" => [400, "GET / HTTP/1.1\r\n#{HEAD}X: a\r\n b\r\n\r\n"],
    "space_before_colon" => [400, "GET / HTTP/1.1\r\n#{HEAD}X : a\r\n\r\n"],
    "nul_in_value" => [400, "GET / HTTP/1.1\r\n#{HEAD}X: a\0b\r\n\r\n"],
    "cl_and_te" => [400, "POST / HTTP/1.1\r\n#{HEAD}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
    "two_lengths" => [400, "POST / HTTP/1.1\r\n#{HEAD}Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde"],
    "signed_length" => [400, "POST / HTTP/1.1\r\n#{HEAD}Content-Length: +4\r\n\r\nabcd"],
    "te_in_1_0" => [400, "POST / HTTP/1.0\r\n#{HEAD}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
    "chunked_not_last" => [400, "POST / HTTP/1.1\r\n#{HEAD}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n"],
    "bad_chunk_size" => [400, "POST / HTTP/1.1\r\n#{HEAD}Transfer-Encoding: chunked\r\n\r\nxyz\r\n"],
    "bad_chunk_end" => [400, "POST / HTTP/1.1\r\n#{HEAD}Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n"],
    "huge_chunk_size" => [400, "POST / HTTP/1.1\r\n#{HEAD}Transfer-Encoding: chunked\r\n\r\n#{"f" * 17}\r\n"],
    "bad_trailer" => [400, "POST / HTTP/1.1\r\n#{HEAD}Transfer-Encoding: chunked\r\n\r\n0\r\nX\r\n\r\n"],
    "announced_too_much" => [413, "POST / HTTP/1.1\r\n#{HEAD}Content-Length: 100001\r\n\r\n"],
    "announced_absurdly_much" => [413, "POST / HTTP/1.1\r\n#{HEAD}Content-Length: #{"9" * 30}\r\n\r\n"],
    "chunk_larger_than_any_body" => [413, "POST / HTTP/1.1\r\n#{HEAD}Transfer-Encoding: chunked\r\n\r\n" \
                                          "#{"186a1\r\n#{"x" * 100_001}\r\n"}"],
    "target_too_long" => [414, "GET /#{"a" * 600} HTTP/1.1\r\n#{HEAD}\r\n"],
    "https_target" => [421, "GET https://a/ HTTP/1.1\r\n#{HEAD}\r\n"],
    "head_too_large" => [431, "GET / HTTP/1.1\r\n#{HEAD}X: #{"a" * 5000}\r\n\r\n"],
    "too_many_fields" => [431, "GET / HTTP/1.1\r\n#{HEAD}#{"X: a\r\n" * 30}\r\n"],
    "endless_head" => [431, "GET / HTTP/1.1\r\n#{HEAD}#{"X: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n" * 5000}"],
    "connect" => [501, "CONNECT a:443 HTTP/1.1\r\n#{HEAD}\r\n"],
    "endless_method" => [501, "A" * 100_000],
    "unknown_coding" => [501, "POST / HTTP/1.1\r\n#{HEAD}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"],
    "http_2" => [505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    "http_3_0" => [505, "GET / HTTP/3.0\r\n#{HEAD}\r\n"]
  }.freeze

  CASES.each do |what, (status, bytes)|
    define_method("test_#{status}_#{what}") do
      answer = @served.exchange(bytes)

      assert_equal [status, "close"], [answer.status, answer["connection"]]
      assert_equal answer["content-length"].to_i, answer.body.bytesize
      assert_empty @served.worker.called(:job_started) if status == 400 && !what.match?(/chunk|trailer/)
    end
  end

  CUT_OFF = {
    "in_the_method" => "GE", "in_the_target" => "GET /a", "in_the_version" => "GET / HTTP/1.",
    "after_the_line" => "GET / HTTP/1.1\r\n", "in_a_field" => "GET / HTTP/1.1\r\nHost: a",
    "before_the_end" => "GET / HTTP/1.1\r\nHost: a\r\n\r",
    "in_a_body" => "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabc",
    "before_a_body" => "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n",
    "in_a_large_body" => "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 50000\r\n\r\n#{"x" * 30_000}",
    "in_a_chunk" => "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    "before_the_last_chunk" => "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"
  }.freeze

  CUT_OFF.each do |where, bytes|
    define_method("test_cut_off_#{where}") do
      assert_equal 400, @served.exchange(bytes, finish: true).status
      assert_empty @served.worker.called(:job_deadline), "the application must not see half a request"
    end

    define_method("test_slow_#{where}") do
      with(header_timeout: 0.05, body_timeout: 0.05)

      assert_equal 408, @served.exchange(bytes).status
    end

    define_method("test_reset_#{where}") do
      socket = @served.connect
      socket.setsockopt(:SOCKET, :LINGER, [1, 0].pack("ii"))
      socket.write(bytes)
      socket.close
    end
  end

  def test_a_client_that_says_nothing_is_closed_without_a_word
    with(header_timeout: 0.05)

    assert_predicate @served.exchange(""), :closed_without_answer?
  end

  def test_a_client_that_only_connects
    assert_predicate @served.exchange("", finish: true), :closed_without_answer?
  end

  def test_drops_do_not_buy_time_for_the_head
    with(header_timeout: 0.2)
    socket = @served.connect
    answer = drip(socket, "GET / HTTP/1.1\r\nX: ", "a")

    assert_match(/\AHTTP\S+ 408 /, answer)
  ensure
    socket&.close
  end

  def test_drops_do_not_buy_time_for_the_body
    with(body_timeout: 0.2)
    socket = @served.connect
    answer = drip(socket, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 90000\r\n\r\n", "a")

    assert_match(/\AHTTP\S+ 408 /, answer)
  ensure
    socket&.close
  end

  # Sends a byte every now and then until the other side has had enough.
  def drip(socket, beginning, drop)
    socket.write(beginning)
    socket.write(drop) until socket.wait_readable(0.02)
    socket.read
  end

  def test_the_answer_survives_a_client_that_is_still_sending
    socket = @served.connect
    socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5000000\r\n\r\n")
    socket.write("x" * 5_000_000)
    socket.shutdown(:WR)

    assert_match(/\AHTTP\S+ 413 /, socket.read)
  ensure
    socket&.close
  end

  def test_100_continue_is_not_said_to_a_body_that_is_refused
    answer = @served.exchange("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 200000\r\n\r\n")

    assert_equal 413, answer.status
  end

  def test_a_head_request_that_is_refused_gets_no_body
    answer = @served.exchange("HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n")

    assert_equal [413, ""], [answer.status, answer.body]
  end

  LEGAL = {
    "http_1_0" => "GET / HTTP/1.0\r\n\r\n",
    "http_1_2" => "GET / HTTP/1.2\r\nHost: a\r\n\r\n",
    "empty_line_first" => "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "absolute_target" => "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
    "empty_host" => "GET / HTTP/1.1\r\nHost:\r\n\r\n",
    "own_method" => "PURGE / HTTP/1.1\r\nHost: a\r\n\r\n",
    "options" => "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    "body_of_get" => "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab",
    "same_length_twice" => "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab",
    "unknown_expectation" => "GET / HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\n\r\n",
    "upgrade" => "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n"
  }.freeze

  LEGAL.each do |what, bytes|
    define_method("test_200_#{what}") { assert_equal 200, @served.exchange(bytes).status }
  end
end

# Each worker has connections of its own, one request each.
class HTTPDirectConformanceTest < Minitest::Test
  include HTTPConformance

  def mode = HTTPSupport::ServedWork

  def test_the_answer_survives_bytes_behind_the_request
    socket = @served.connect
    socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 5000)
    socket.shutdown(:WR)

    assert_equal 1, socket.read.scan("HTTP/1.1 200").size
  ensure
    socket&.close
  end
end

# The reactor has the connections.
class HTTPReactorConformanceTest < Minitest::Test
  include HTTPConformance

  def mode = HTTPSupport::ServedQueue

  def test_pipelined_requests_are_answered_in_order
    socket = @served.connect
    requests = (0...500).map { |size| "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: #{size}\r\n\r\n#{"x" * size}" }
    writer = Thread.new { socket.write(requests.join, "bad\r\n\r\n") }

    answers = socket.read.split(%r{(?=HTTP/1.1 \d)})
    assert_equal((0...500).map { |size| "POST #{size}" }, answers[0..-2].map { |answer| answer[/\r\n\r\n(.*)/, 1] })
    assert_match(%r{\AHTTP/1.1 400 .*^connection: close}m, answers.last)
    writer.join
  ensure
    socket&.close
  end
end
