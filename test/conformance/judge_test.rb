# frozen_string_literal: true

require "test_helper"
require_relative "support/judge"

# The judge of the parser is judged here: by hand, case by case.
class JudgeTest < Minitest::Test
  RFC9112 = Conformance::RFC9112
  Seen = Conformance::Battery::Seen
  HEAD = "POST / HTTP/1.1\r\nHost: a\r\n"
  CHUNKED = "#{HEAD}Transfer-Encoding: chunked\r\n\r\n".freeze

  def read(bytes) = RFC9112.read(bytes.b)
  def reasons(bytes) = read(bytes).grep(RFC9112::Refusal).map(&:reason)

  RIGHT = {
    "GET /a?b HTTP/1.1\r\nHost: a:1\r\n\r\n" => ["GET", "/a?b", "a:1", ""],
    "GET / HTTP/1.0\r\n\r\n" => ["GET", "/", nil, ""],
    "\r\n\r\nGET / HTTP/1.1\r\nHost:\r\n\r\n" => ["GET", "/", "", ""],
    "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n" => ["OPTIONS", "*", "a", ""],
    "GET http://b:2?c HTTP/1.1\r\nHost: a\r\n\r\n" => ["GET", "http://b:2?c", "b:2", ""],
    "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n" => ["GET", "/", "[::1]:80", ""],
    "GET / HTTP/1.1\r\nHost: [v1.a:b]\r\n\r\n" => ["GET", "/", "[v1.a:b]", ""],
    "x!~ / HTTP/1.9\r\nHost: a\r\nX:\r\nY: \t \x80 b\t\r\n\r\n" => ["x!~", "/", "a", ""],
    "#{HEAD}Content-Length: 3\r\n\r\nabc" => ["POST", "/", "a", "abc"],
    "#{HEAD}Content-Length: 03 , 3\r\n\r\nabc" => ["POST", "/", "a", "abc"],
    "#{HEAD}Transfer-Encoding: Chunked\r\n\r\n2\r\nab\r\n0a ; b = \"c\\\"\" ;d\r\n0123456789\r\n00\r\nX: y\r\n\r\n" =>
      ["POST", "/", "a", "ab0123456789"]
  }.freeze
  RIGHT.each do |bytes, expected|
    define_method("test_right_#{bytes.b.inspect}") do
      first, *others = read(bytes)
      assert_instance_of RFC9112::Message, first, first.to_a.inspect
      assert_equal expected, [first.verb, first.target, first.host, first.body]
      assert_equal [bytes.bytesize, []], [first.ends, others]
    end
  end

  WRONG = {
    "no end of the head" => ["GET / HTTP/1.1\r\nHost: a\r\n", "GET / HTTP/1.1\nHost: a\n\n", "x"],
    "too many empty lines" => ["\r\n\r\n\r\nGET / HTTP/1.0\r\n\r\n"],
    "malformed request line" => ["GET /\r\n\r\n", "GET  / HTTP/1.0\r\n\r\n", " GET / HTTP/1.0\r\n\r\n",
                                 "GET / HTTP/1.0 \r\n\r\n", "GET / http/1.0\r\n\r\n", "GET /\tHTTP/1.0\r\n\r\n",
                                 "G(T / HTTP/1.0\r\n\r\n", "GET /\xFF HTTP/1.0\r\n\r\n", "\nGET / HTTP/1.0\r\n\r\n"],
    "another major version" => ["GET / HTTP/2.0\r\n\r\n"],
    "malformed field line" => ["GET / HTTP/1.0\r\nX : a\r\n\r\n", "GET / HTTP/1.0\r\nX: a\r\n b\r\n\r\n",
                               "GET / HTTP/1.0\r\nX: a\0\r\n\r\n", "GET / HTTP/1.0\r\nX: a\nb\r\n\r\n",
                               "GET / HTTP/1.0\r\nX\r\n\r\n", "GET / HTTP/1.0\r\n: a\r\n\r\n",
                               "GET / HTTP/1.0\r\nX: a\rb\r\n\r\n", "GET / HTTP/1.0\r\nX: \x7F\r\n\r\n"],
    "Host is missing" => ["GET / HTTP/1.1\r\n\r\n"],
    "more than one Host" => ["GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n"],
    "malformed host" => ["GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "GET http:/// HTTP/1.0\r\n\r\n",
                         "GET http://u@a/ HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\r\nHost: :80\r\n\r\n"],
    "malformed IPv6 address" => ["GET / HTTP/1.1\r\nHost: [1.2.3.4]\r\n\r\n", "GET / HTTP/1.1\r\nHost: [:::]\r\n\r\n"],
    "a port beyond 65535" => ["GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n"],
    "CONNECT is for proxies" => ["CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"],
    "malformed target" => ["GET * HTTP/1.0\r\n\r\n", "GET a HTTP/1.0\r\n\r\n", "GET /#a HTTP/1.0\r\n\r\n",
                           "GET /%4 HTTP/1.0\r\n\r\n", "GET https://a/ HTTP/1.0\r\n\r\n", "GET /\" HTTP/1.0\r\n\r\n"],
    "malformed Connection" => ["GET / HTTP/1.0\r\nConnection: a b\r\n\r\n"],
    "Transfer-Encoding in HTTP/1.0" => ["POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
    "a transfer coding but chunked alone" =>
      ["", "gzip, chunked", "chunked, gzip", "chunked, chunked", "chunked,", "xchunked", "chunked;a=b"].map do |coding|
        "#{HEAD}Transfer-Encoding: #{coding}\r\n\r\n0\r\n\r\n"
      end,
    "both Transfer-Encoding and Content-Length" =>
      ["#{HEAD}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"],
    "malformed Content-Length" => ["", "+1", "-1", "0x1", "1,", ",1", "1 1", "1.0"].map do |length|
      "#{HEAD}Content-Length: #{length}\r\n\r\na"
    end,
    "differing Content-Length" => ["#{HEAD}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"],
    "the body is cut off" => ["#{HEAD}Content-Length: 4\r\n\r\nabc"],
    "malformed chunk size" =>
      ["x", "", "0x1", "-1", "1 ", "1;", "1;=b", "1;a=", "1;a=\"b", "1;a b", "1;a "].map do |size|
        "#{CHUNKED}#{size}\r\na\r\n0\r\n\r\n"
      end,
    "malformed chunk" => ["1\r\nab\r\n0\r\n\r\n", "1\r\na\n0\r\n\r\n", "5\r\nab"].map { |body| "#{CHUNKED}#{body}" },
    "no end of the trailer section" => ["#{CHUNKED}0\r\n"]
  }.freeze
  WRONG.each do |reason, all|
    all.each { |bytes| define_method("test_wrong_#{bytes.b.inspect}") { assert_equal [reason], reasons(bytes) } }
  end

  def test_several_messages
    get = "GET / HTTP/1.1\r\nHost: a\r\n"
    assert_equal [true, true], read("#{get}\r\n#{HEAD}Content-Length: 4\r\n\r\n\r\n\r\n").map(&:keep)
    assert_equal ["malformed request line"], reasons("#{get}\r\n#{HEAD}\r\nx y\r\n\r\n")
    assert_equal [false], read("#{get}Connection: x, Close\r\n\r\nrest").map(&:keep)
    assert_equal [false], read("GET / HTTP/1.0\r\n\r\nrest").map(&:keep)
    assert_equal [true, true], read("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" * 2).map(&:keep)
    assert_equal [[%w[x y]]], read("#{CHUNKED}0\r\nX: y\r\n\r\n").map(&:trailer)
  end

  def test_what_may_be_taken_or_not
    ["GET /a[b] HTTP/1.0\r\n\r\n", "GET /?a=%zz{} HTTP/1.0\r\n\r\n", "#{HEAD}Content-Length: 1, 1\r\n\r\na",
     "#{"A" * 33} / HTTP/1.0\r\n\r\n",
     "#{HEAD}Transfer-Encoding: chunked\r\n\r\n#{"0" * 15}1\r\na\r\n0\r\n\r\n"].each do |bytes|
      refute_empty read(bytes).first.lenient, bytes
    end
  end

  GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
  OK = Seen.new(200, "GET", "/", "a", "")
  BAD = Seen.new(400)

  def fault(input, *seen, most: nil) = Conformance::Judge.new(most: most).fault(input, seen)

  def test_what_is_no_fault
    assert_nil fault(GET, OK)
    assert_nil fault(GET * 2, OK, OK)
    assert_nil fault(GET * 2, OK, most: 1)
    assert_nil fault("#{GET}x", OK, BAD)
    assert_nil fault("#{GET}x", OK), "a close without a word"
    assert_nil fault("", *[])
    assert_nil fault("GET /[] HTTP/1.0\r\n\r\n#{GET}", BAD)
  end

  def test_what_is_a_fault
    { [GET, BAD] => /refused with 400/, [GET] => /no answer/, [GET, OK, OK] => /nobody asked/,
      ["x\r\n\r\n", OK] => /is wrong/, [GET * 2, OK] => /no answer/, ["#{GET}x\r\n\r\n", OK, OK] => /is wrong/,
      ["x", BAD, BAD] => /nobody asked/ }.each { |(input, *seen), wrong| assert_match wrong, fault(input, *seen) }
    [["GET", "/b", "a", ""], ["GET", "/", "a", "x"], ["GET", "/", "b", ""], ["PUT", "/", "a", ""]].each do |echo|
      assert_match(/instead of/, fault(GET, Seen.new(200, *echo)))
    end
  end
end
