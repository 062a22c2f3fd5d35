# frozen_string_literal: true

require "test_helper"
require "pando/native"
require_relative "support/parsing"

# Requests that the parser refuses, and with which status.
class HTTPParserRefusalsTest < Minitest::Test
  include HTTPSupport::Parsing

  def self.refuses(status, what, bytes)
    define_method("test_#{status}_#{what}") { refuse(status, bytes.b) }
  end

  LINES = [
    "", " ", "GET", "GET ", "GET /", "GET / ", "GET  / HTTP/1.1", "GET /  HTTP/1.1", "GET / HTTP/1.1 ",
    " GET / HTTP/1.1", "\tGET / HTTP/1.1", "GET\t/ HTTP/1.1", "GET /\tHTTP/1.1", "G\0T / HTTP/1.1",
    "G(T / HTTP/1.1", "G:T / HTTP/1.1", "GET: / HTTP/1.1", "GÄT / HTTP/1.1", "\"GET\" / HTTP/1.1",
    "GET / http/1.1", "GET / HTTP/1", "GET / HTTP/1.", "GET / HTTP/.1", "GET / HTTP/1.1.1", "GET / HTTP/1.10",
    "GET / HTTP/10.1", "GET / HTTP/1,1", "GET / HTTP/ 1.1", "GET / HTTP /1.1", "GET / HTTPS/1.1",
    "GET / HTTP/x.y", "GET / HTTP/-1.1", "GET / HTTP/1.1x", "GET / FTP/1.1", "GET / HTTP/1.1\0",
    "GET /a b HTTP/1.1", "GET / a HTTP/1.1", "GET HTTP/1.1", "GET /\n HTTP/1.1", "GET /\r HTTP/1.1",
    "GET /\0 HTTP/1.1", "GET /\x7F HTTP/1.1", "GET /\x01 HTTP/1.1", "GET /ä HTTP/1.1", "GET /\xFF HTTP/1.1",
    "GET /a#b HTTP/1.1", "GET /?a#b HTTP/1.1", "GET /a\"b HTTP/1.1", "GET /<a> HTTP/1.1", "GET /?<a> HTTP/1.1",
    "GET /a\\b HTTP/1.1", "GET /{a} HTTP/1.1", "GET /a^b HTTP/1.1", "GET /`a HTTP/1.1",
    "GET /% HTTP/1.1", "GET /%4 HTTP/1.1", "GET /%4g HTTP/1.1", "GET /%g4 HTTP/1.1", "GET /%%41 HTTP/1.1",
    "GET a HTTP/1.1", "GET ?a HTTP/1.1", "GET * HTTP/1.1", "OPTIONS ** HTTP/1.1", "OPTIONS *?a HTTP/1.1",
    "GET example.com HTTP/1.1", "GET example.com:80 HTTP/1.1", "GET http:// HTTP/1.1", "GET http:/// HTTP/1.1",
    "GET http:/a HTTP/1.1", "GET http://?a HTTP/1.1", "GET http://:80/ HTTP/1.1", "GET http://a:b/ HTTP/1.1",
    "GET http://u@a/ HTTP/1.1", "GET http://u:p@a/ HTTP/1.1", "GET http://a:65536/ HTTP/1.1",
    "GET http://a%/ HTTP/1.1", "GET http://[::1/ HTTP/1.1", "GET http://[a]/ HTTP/1.1", "GET ftp://a/ HTTP/1.1",
    "GET http://a/%zz HTTP/1.1", "GET file:///etc/passwd HTTP/1.1", "GET urn:a:b HTTP/1.1",
    "CONNECT / HTTP/1.1", "CONNECT a HTTP/1.1", "CONNECT a: HTTP/1.1", "CONNECT http://a:1/ HTTP/1.1",
    "CONNECT :443 HTTP/1.1", "CONNECT * HTTP/1.1", "CONNECT a:443/ HTTP/1.1", "CONNECT a:b HTTP/1.1"
  ].freeze
  LINES.each { |line| refuses 400, "line_#{line.inspect}", "#{line}\r\nHost: a\r\n\r\n" }

  refuses 400, "three_empty_lines_first", "\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"
  refuses 400, "bare_lf_first", "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"
  refuses 400, "bare_cr_first", "\rGET / HTTP/1.1\r\nHost: a\r\n\r\n"
  refuses 400, "tls_hello", "\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03"

  %w[0.9 0.0 2.0 2.1 3.0 9.9].each do |version|
    refuses 505, "version_#{version}", "GET / HTTP/#{version}\r\nHost: a\r\n\r\n"
  end
  refuses 505, "preface_of_http_2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
  refuses 501, "method_too_long", "#{"A" * 33} / HTTP/1.1\r\nHost: a\r\n\r\n"

  ENDS = {
    "bare_lf_after_the_line" => "GET / HTTP/1.1\nHost: a\r\n\r\n",
    "bare_cr_after_the_line" => "GET / HTTP/1.1\rHost: a\r\n\r\n",
    "bare_lf_after_a_field" => "GET / HTTP/1.1\r\nHost: a\n\r\n",
    "bare_cr_after_a_field" => "GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n",
    "bare_lf_at_the_end" => "GET / HTTP/1.1\r\nHost: a\r\n\n",
    "bare_cr_at_the_end" => "GET / HTTP/1.1\r\nHost: a\r\n\rx",
    "cr_cr_lf" => "GET / HTTP/1.1\r\nHost: a\r\r\n\r\n"
  }.freeze
  ENDS.each { |what, bytes| refuses 400, what, bytes }

  FIELDS = [
    "X", "X ", ":", ": a", " : a", "X : a", "X\t: a", "X\0: a", "X(: a", "X a: b", "\"X\": a", "X\xC3\xA4: a",
    "X@: a", "X/: a", "X[: a", "X{: a", "X=: a", "X;: a", "X,: a", "X?: a", "X<: a", "X\\: a", "X\x7F: a",
    " X: a", "\tX: a", "X: a\0b", "X: a\rb", "X: a\nb", "X: a\x01", "X: a\x0Bb", "X: a\x0Cb", "X: \x7F", "X: \x1B[0m",
    "X: a\r\n b", "X: a\r\n\tb", "X: a\r\n ", "X: a\r\n b: c", "X:\r\n a"
  ].freeze
  FIELDS.each { |field| refuses 400, "field_#{field.inspect}", "GET / HTTP/1.1\r\nHost: a\r\n#{field}\r\n\r\n" }
  FIELDS.first(20).each do |field|
    refuses 400, "first_field_#{field.inspect}", "GET / HTTP/1.1\r\n#{field}\r\nHost: a\r\n\r\n"
  end
  refuses 400, "folded_request_line", "GET / HTTP/1.1\r\n Host: a\r\n\r\n"

  HOSTS = [
    "a b", "a\tb", "a/b", "a?b", "a#b", "a@b", "u:p@a", "a:b", "a:1:2", "a:-1", "a:+1", "a: 1", "a:65536",
    "a:99999999999999999999", ":80", ":", "\"a\"", "<a>", "a\\b", "a^b", "a`b", "a{b}", "a|b", "a%", "a%4", "a%zz", "ä",
    "[", "]", "[]", "[:]", "[:::]", "[::1", "::1", "[::1]x", "[::1]:x", "[1:2:3:4:5:6:7]", "[1:2:3:4:5:6:7:8:9]",
    "[1::2::3]", "[12345::]", "[g::]", "[1:2:3:4:5:6:7:8::]", "[::1.2.3]", "[::1.2.3.4.5]", "[::256.1.1.1]",
    "[::01.2.3.4]", "[1.2.3.4]", "[1.2.3.4::]", "[fe80::1%25eth0]", "[fe80::1%eth0]", "[1:]", "[:1]", "[1:2:]",
    "[v]", "[v.a]", "[v1.]", "[v1]", "[vg.a]", "[v1.a/b]", "[::1]]", "[[::1]]", "a, b"
  ].freeze
  HOSTS.each do |host|
    refuses 400, "host_#{host.inspect}", "GET / HTTP/1.1\r\nHost: #{host}\r\n\r\n"
    refuses 400, "host_of_1_0_#{host.inspect}", "GET / HTTP/1.0\r\nHost: #{host}\r\n\r\n"
  end

  refuses 400, "host_missing", "GET / HTTP/1.1\r\n\r\n"
  refuses 400, "host_missing_in_1_2", "GET / HTTP/1.2\r\n\r\n"
  refuses 400, "host_missing_with_an_absolute_target", "GET http://a/ HTTP/1.1\r\n\r\n"
  refuses 400, "host_twice", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"
  refuses 400, "host_twice_the_same", "GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n"
  refuses 400, "host_twice_in_1_0", "GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n"
  refuses 400, "host_twice_one_empty", "GET / HTTP/1.1\r\nHost: a\r\nHost:\r\n\r\n"
  refuses 400, "bad_host_with_an_absolute_target", "GET http://a/ HTTP/1.1\r\nHost: a b\r\n\r\n"

  LENGTHS = ["", "-1", "+1", "1.0", "0x5", "1 1", "5,6", "5,", ",5", "5,,5", "a", "5a", "1_000", "\"5\"",
             "1e3", "5;5", "५", "- 1"].freeze
  LENGTHS.each do |length|
    refuses 400, "length_#{length.inspect}", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: #{length}\r\n\r\n"
  end
  refuses 400, "differing_lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"
  refuses 400, "length_and_empty_one", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length:\r\n\r\n"
  refuses 400, "length_zero_and_five", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n"
  %w[1000000000000000001 1000000000000000010 9223372036854775799 9223372036854775807 9223372036854775808
     18446744073709551616 99999999999999999999999999].each do |length|
    refuses 413, "length_#{length}", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: #{length}\r\n\r\n"
  end

  CODINGS = {
    "" => 400, "identity" => 400, "gzip" => 400, "xchunked" => 400, "chunkedx" => 400, "chunked, gzip" => 400,
    "chunked, identity" => 400, "chunked, chunked" => 400, "chunked,chunked" => 400, "chunked;a=b" => 400,
    ",chunked" => 400, "chunked," => 400, "chunked chunked" => 400, "\"chunked\"" => 400,
    "'chunked'" => 400, "ch\u00fcnked" => 400,
    "gzip, chunked" => 501, "identity, chunked" => 501, "a;b=c, chunked" => 501,
    "chunked, gzip, chunked" => 400, "chunk" => 400
  }.freeze
  CODINGS.each do |coding, status|
    refuses status, "coding_#{coding.inspect}", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: #{coding}\r\n\r\n"
  end

  chunked = "Transfer-Encoding: chunked\r\n"
  FRAMES = {
    "coding_then_length" => [400, "1.1", "#{chunked}Content-Length: 5\r\n"],
    "length_then_coding" => [400, "1.1", "Content-Length: 5\r\n#{chunked}"],
    "zero_length_and_coding" => [400, "1.1", "Content-Length: 0\r\n#{chunked}"],
    "coding_in_1_0" => [400, "1.0", chunked],
    "coding_in_two_fields" => [501, "1.1", "Transfer-Encoding: gzip\r\n#{chunked}"],
    "chunked_first_of_two_fields" => [400, "1.1", "#{chunked}Transfer-Encoding: gzip\r\n"],
    "chunked_in_two_fields" => [400, "1.1", chunked * 2],
    "connection_no_token" => [400, "1.1", "Connection: a b\r\n"],
    "connection_quoted" => [400, "1.1", "Connection: \"close\"\r\n"]
  }.freeze
  FRAMES.each do |what, (status, version, fields)|
    refuses status, what, "POST / HTTP/#{version}\r\nHost: a\r\n#{fields}\r\n"
  end

  def test_414_as_soon_as_the_target_is_too_long
    accept("GET /#{"a" * 511} HTTP/1.1\r\nHost: a\r\n\r\n")
    refuse(414, "GET /#{"a" * 512} HTTP/1.1\r\nHost: a\r\n\r\n")
    refuse(414, "GET /#{"a" * 512}")
    refuse(414, "GET /?#{"a" * 511} HTTP/1.1\r\nHost: a\r\n\r\n")
  end

  def test_414_if_the_head_ends_inside_the_target
    refuse(414, "GET /#{"a" * 200} HTTP/1.1\r\nHost: a\r\n\r\n", [100, 512, 20])
  end

  def test_431_as_soon_as_there_are_too_many_fields
    accept("GET / HTTP/1.1\r\nHost: a\r\n#{"X: a\r\n" * 19}\r\n")
    refuse(431, "GET / HTTP/1.1\r\nHost: a\r\n#{"X: a\r\n" * 20}\r\n")
    refuse(431, "GET / HTTP/1.1\r\nHost: a\r\n#{"X: a\r\n" * 19}X:")
  end

  def test_431_as_soon_as_the_head_is_too_large
    line = "GET / HTTP/1.1\r\nHost: a\r\nX: "
    room = 4096 - line.bytesize - 4

    accept("#{line}#{"a" * room}\r\n\r\n")
    refuse(431, "#{line}#{"a" * (room + 1)}\r\n\r\n")
    refuse(431, "#{line}#{"a" * 5000}")
    refuse(431, "GET / HTTP/1.1\r\n#{"a" * 5000}")
    refuse(431, "GET / HTTP/1.1\r\nHost: a\r\nX:#{" " * 5000}")
  end

  def test_a_refusal_is_final
    parser = Pando::HTTP::Parser.new(4096, 512, 20)
    assert_equal 400, parser.run("GET\n")
    assert_equal 400, parser.run("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert_raises(RuntimeError) { parser.environment({}, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", nil, "*") }
  end
end
