# frozen_string_literal: true

require "test_helper"
require "pando/native"
require_relative "support/parsing"

# Requests that the parser takes and what it makes of them. What it refuses is in
# parser_refusals_test.rb.
class HTTPParserTest < Minitest::Test
  include HTTPSupport::Parsing

  TARGETS = {
    "/" => ["/", ""],
    "/a/b" => ["/a/b", ""],
    "/a?b=c" => ["/a", "b=c"],
    "/?" => ["/", ""],
    "/??" => ["/", "?"],
    "/a?b?c" => ["/a", "b?c"],
    "//a" => ["//a", ""],
    "/%41%2f%C3%a4" => ["/%41%2f%C3%a4", ""],
    "/%00" => ["/%00", ""],
    "/a;b=c,d" => ["/a;b=c,d", ""],
    "/:@!$&'()*+,;=-._~" => ["/:@!$&'()*+,;=-._~", ""],
    "/../x" => ["/../x", ""],
    "/[a]|b" => ["/[a]|b", ""],
    "/?a[]=1|2{3}`4^5\\6" => ["/", "a[]=1|2{3}`4^5\\6"],
    "/?100%" => ["/", "100%"],
    "/?a=/b:@" => ["/", "a=/b:@"],
    "http://example.org" => ["/", ""],
    "http://example.org/" => ["/", ""],
    "http://example.org?a" => ["/", "a"],
    "http://example.org/a?b" => ["/a", "b"],
    "HTTP://example.org/a" => ["/a", ""],
    "http://example.org:81/a" => ["/a", ""],
    "http://[::1]/a" => ["/a", ""]
  }.freeze

  TARGETS.each do |target, (path, query)|
    define_method("test_target_#{target}") do
      env = accept("GET #{target} HTTP/1.1\r\nHost: example.com\r\n\r\n")

      assert_equal [path, query, target], env.values_at("PATH_INFO", "QUERY_STRING", "REQUEST_URI")
    end
  end

  HOSTS = {
    "example.com" => ["example.com", "80"],
    "EXAMPLE.com:8080" => ["EXAMPLE.com", "8080"],
    "example.com:" => ["example.com", "80"],
    "a_b-c.d~e" => ["a_b-c.d~e", "80"],
    "a!$&'()*+,;=b" => ["a!$&'()*+,;=b", "80"],
    "a%41b" => ["a%41b", "80"],
    "127.0.0.1:1" => ["127.0.0.1", "1"],
    "x:65535" => %w[x 65535],
    "x:0080" => %w[x 0080],
    "[::]" => ["[::]", "80"],
    "[::1]:8080" => ["[::1]", "8080"],
    "[2001:db8::ff00:42:8329]" => ["[2001:db8::ff00:42:8329]", "80"],
    "[1:2:3:4:5:6:7:8]" => ["[1:2:3:4:5:6:7:8]", "80"],
    "[1:2:3:4:5:6:7::]" => ["[1:2:3:4:5:6:7::]", "80"],
    "[::2:3:4:5:6:7:8]" => ["[::2:3:4:5:6:7:8]", "80"],
    "[::ffff:192.0.2.1]" => ["[::ffff:192.0.2.1]", "80"],
    "[1:2:3:4:5:6:192.0.2.1]" => ["[1:2:3:4:5:6:192.0.2.1]", "80"],
    "[v1.a:b]" => ["[v1.a:b]", "80"]
  }.freeze

  HOSTS.each do |host, (name, port)|
    define_method("test_host_#{host}") do
      env = accept("GET / HTTP/1.1\r\nHost: #{host}\r\n\r\n")

      assert_equal [host, name, port], env.values_at("HTTP_HOST", "SERVER_NAME", "SERVER_PORT")
    end
  end

  def test_an_empty_host_is_legal_and_names_nothing
    env = accept("GET / HTTP/1.1\r\nHost:\r\n\r\n")

    assert_equal "", env["HTTP_HOST"]
    refute_includes env, "SERVER_NAME"
  end

  def test_http_1_0_may_go_without_host
    env = accept("GET / HTTP/1.0\r\n\r\n")

    assert_equal "HTTP/1.0", env["SERVER_PROTOCOL"]
    refute_includes env, "HTTP_HOST"
  end

  def test_the_authority_of_an_absolute_target_replaces_host
    env = accept("GET http://example.org:81/a HTTP/1.1\r\nHost: other.example\r\n\r\n")

    assert_equal %w[example.org:81 example.org 81], env.values_at("HTTP_HOST", "SERVER_NAME", "SERVER_PORT")
  end

  def test_an_https_target_is_noticed
    accept("GET https://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n")

    assert_predicate @parser, :https?
  end

  def test_options_may_ask_for_the_server_as_a_whole
    assert_equal "*", accept("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")["PATH_INFO"]
  end

  def test_connect_names_an_authority
    accept("CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n")

    assert_predicate @parser, :connect?
  end

  ["GET", "get", "M-SEARCH", "!#$%&'*+-.^_`|~", "A" * 32].each do |method|
    define_method("test_method_#{method}") do
      assert_equal method, accept("#{method} / HTTP/1.1\r\nHost: a\r\n\r\n")["REQUEST_METHOD"]
    end
  end

  { "1.0" => "HTTP/1.0", "1.1" => "HTTP/1.1", "1.2" => "HTTP/1.1", "1.9" => "HTTP/1.1" }.each do |sent, seen|
    define_method("test_version_#{sent}_is_treated_as_#{seen}") do
      assert_equal seen, accept("GET / HTTP/#{sent}\r\nHost: a\r\n\r\n")["SERVER_PROTOCOL"]
    end
  end

  def test_empty_lines_before_the_request_are_skipped
    assert_equal "/", accept("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")["PATH_INFO"]
  end

  VALUES = {
    "X: a" => "a", "X:a" => "a", "X:  a  " => "a", "X:\ta\t " => "a", "X: a b\tc" => "a b\tc",
    "X:" => "", "X:   " => "", "X: \"a\" (b) [c] {d} <e> @ : ; \\ /" => "\"a\" (b) [c] {d} <e> @ : ; \\ /",
    "X: \xC3\xA4\xFF".b => "\xC3\xA4\xFF".b, "x: a" => "a"
  }.freeze

  VALUES.each do |line, value|
    define_method("test_field_#{line.inspect}") do
      assert_equal value, accept("GET / HTTP/1.1\r\nHost: a\r\n#{line}\r\n\r\n".b)["HTTP_X"]
    end
  end

  def test_what_follows_the_head_is_left_alone
    head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    accept("#{head}\0\xFFmore".b)

    assert_equal head.bytesize, @parser.head_size
  end

  FRAMES = {
    "" => [false, nil], "Content-Length: 0\r\n" => [false, 0], "Content-Length: 5\r\n" => [true, 5],
    "content-length:005\r\n" => [true, 5], "Content-Length: 5, 5\r\n" => [true, 5],
    "Content-Length: 5\r\nContent-Length: 5\r\n" => [true, 5],
    "Content-Length: 999999999999999999\r\n" => [true, 999_999_999_999_999_999],
    "Content-Length: 1000000000000000000\r\n" => [true, 10**18],
    "Transfer-Encoding: chunked\r\n" => [:chunked, nil], "transfer-encoding: CHUNKED\r\n" => [:chunked, nil]
  }.freeze

  FRAMES.each do |fields, (body, length)|
    define_method("test_body_after_#{fields.inspect}") do
      env = accept("POST / HTTP/1.1\r\nHost: a\r\n#{fields}\r\n")

      assert_equal [body && true, body == :chunked, length],
                   [@parser.body?, @parser.chunked?, @parser.content_length]
      length ? assert_equal(length.to_s, env["CONTENT_LENGTH"]) : refute_includes(env, "CONTENT_LENGTH")
      refute_includes env, "HTTP_TRANSFER_ENCODING"
    end
  end

  CONNECTIONS = {
    ["1.1", ""] => true, ["1.1", "Connection: close\r\n"] => false, ["1.1", "Connection: a, CLOSE\r\n"] => false,
    ["1.1", "Connection: keep-alive\r\n"] => true, ["1.0", ""] => false,
    ["1.0", "Connection: Keep-Alive\r\n"] => true, ["1.0", "Connection: keep-alive, close\r\n"] => false,
    ["1.1", "Connection: ,\r\n"] => true, ["1.1", "Connection: closed\r\n"] => true
  }.freeze

  CONNECTIONS.each do |(version, fields), kept|
    define_method("test_keep_alive_of_#{version}_#{fields.inspect}") do
      accept("GET / HTTP/#{version}\r\nHost: a\r\n#{fields}\r\n")

      assert_equal kept, @parser.keep_alive?
    end
  end

  def test_fields_of_proxies_are_noticed
    %w[X-Forwarded-For x-forwarded-proto X-FORWARDED-SSL].each do |name|
      accept("GET / HTTP/1.1\r\nHost: a\r\n#{name}: b\r\n\r\n")
      assert_predicate @parser, :forwarded?, name
    end
    %w[X-Forwarded-Fox X-Forwarded-Host Transfer-Encodinx].each do |name|
      accept("GET / HTTP/1.1\r\nHost: a\r\n#{name}: b\r\n\r\n")
      refute_predicate @parser, :forwarded?, name
    end
  end

  def test_expect_continue_is_noticed_in_http_1_1_only
    accept("GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\n\r\n")
    assert_predicate @parser, :expect_continue?
    accept("GET / HTTP/1.0\r\nHost: a\r\nExpect: 100-continue\r\n\r\n")
    refute_predicate @parser, :expect_continue?
  end

  def test_a_parser_is_used_again
    parser = Pando::HTTP::Parser.new(4096, 512, 20)
    2.times do |i|
      parser.reset
      head = "GET /#{i} HTTP/1.1\r\nHost: a\r\n\r\n"

      assert_equal true, parser.run(head)
      assert_equal "/#{i}", parser.environment({}, head, nil, "*")["PATH_INFO"]
    end
  end

  def test_a_result_cannot_be_read_before_its_time_or_from_another_buffer
    parser = Pando::HTTP::Parser.new(4096, 512, 20)
    assert_raises(RuntimeError) { parser.environment({}, "", nil, "*") }
    parser.run("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert_raises(ArgumentError) { parser.environment({}, "GET /", nil, "*") }
    assert_raises(RuntimeError) { Pando::HTTP::Parser.allocate.run("") }
    assert_raises(RuntimeError) { parser.send(:initialize, 1, 1, 1) }
    [[0, 1, 1], [1, 0, 1], [1, 1, 0], [-1, 1, 1], [1 << 40, 1, 1]].each do |sizes|
      assert_raises(ArgumentError, RangeError) { Pando::HTTP::Parser.new(*sizes) }
    end
  end
end
