# frozen_string_literal: true

require "test_helper"
require "pando/native"
require_relative "support/proxy_headers"

# What the PROXY protocol says of a connection; the rules are HAProxy's "The PROXY protocol", section 2.
class HTTPProxyTest < Minitest::Test
  include HTTPSupport::ProxyHeaders

  GET = "GET / HTTP/1.1\r\n"

  # However the bytes are cut, and whatever follows.
  def parse(header)
    header = header.b
    (0...header.bytesize).each do |length|
      assert_nil Pando::HTTP::Proxy.parse(header.byteslice(0, length)), "after #{length} bytes of #{header.inspect}"
    end
    bytes, address = Pando::HTTP::Proxy.parse(header)
    assert_equal [bytes, address], Pando::HTTP::Proxy.parse(header + GET)
    assert_equal header.bytesize, bytes
    address
  end

  # As soon as it can be told, and for good.
  def refuse(header)
    header = header.b
    verdicts = (1..header.bytesize).map { |length| Pando::HTTP::Proxy.parse(header.byteslice(0, length)) }
    assert_equal false, verdicts.last, header.inspect
    assert_equal verdicts.index(false), verdicts.count(nil), "#{header.inspect} was believed for a while"
  end

  GIVEN = {
    "PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n" => "192.0.2.1",
    "PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n" => "255.255.255.255",
    "PROXY TCP4 0.0.0.0 0.0.0.0 0 0\r\n" => "0.0.0.0",
    "PROXY TCP6 2001:db8::1 2001:DB8:0:0:0:0:0:2 4124 443\r\n" => "2001:db8::1",
    "PROXY TCP6 2001:0DB8:0:0:0:0:0:1 ::1 4124 443\r\n" => "2001:db8::1",
    "PROXY TCP6 ::ffff:192.0.2.1 ::ffff:c000:202 4124 443\r\n" => "192.0.2.1",
    "PROXY TCP6 #{(["ffff"] * 8).join(":")} #{(["ffff"] * 8).join(":")} 65535 65535\r\n" => (["ffff"] * 8).join(":"),
    "PROXY UNKNOWN\r\n" => nil,
    "PROXY UNKNOWN #{(["ffff"] * 8).join(":")} #{(["ffff"] * 8).join(":")} 65535 65535\r\n" => nil,
    "PROXY UNKNOWN what \0ever \xFF\r\n" => nil
  }.freeze
  GIVEN.each do |header, address|
    define_method("test_version_1_#{header.b.inspect}") { assert_equal [address], [parse(header)] }
  end

  ADDRESSES = "TCP4 192.0.2.1 198.51.100.2 56324 443"
  WRONG = [
    "GET / HTTP/1.1\r\n", "proxy #{ADDRESSES}\r\n", "PROXY#{ADDRESSES}\r\n", "PROXY\r\n", "PROXY \r\n",
    " PROXY UNKNOWN\r\n", "\r\nPROXY UNKNOWN\r\n", "PROXY  #{ADDRESSES}\r\n", "PROXY\t#{ADDRESSES}\r\n",
    "PROXY #{ADDRESSES} \r\n", "PROXY #{ADDRESSES}\n", "PROXY #{ADDRESSES}\r\r\n", "PROXY #{ADDRESSES}\rX",
    "PROXY #{ADDRESSES} 1\r\n", "PROXY UNKNOWN\n", "PROXY UNKNOWNX\r\n", "PROXY unknown\r\n",
    "PROXY TCP5 192.0.2.1 192.0.2.2 1 2\r\n", "PROXY UDP4 192.0.2.1 192.0.2.2 1 2\r\n", "PROXY TCP4\r\n",
    "PROXY TCP4 192.0.2.1\r\n", "PROXY TCP4 192.0.2.1 192.0.2.2\r\n", "PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n",
    "PROXY TCP4  192.0.2.1 192.0.2.2 1 2\r\n", "PROXY TCP4 192.0.2.1 192.0.2.2 1  2\r\n",
    "PROXY TCP4 192.0.2 192.0.2.2 1 2\r\n", "PROXY TCP4 192.0.2.1.1 192.0.2.2 1 2\r\n",
    "PROXY TCP4 192.0.2.256 192.0.2.2 1 2\r\n", "PROXY TCP4 192.0.2.01 192.0.2.2 1 2\r\n",
    "PROXY TCP4 ::1 ::1 1 2\r\n", "PROXY TCP4 192.0.2.1\0 192.0.2.2 1 2\r\n",
    "PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n", "PROXY TCP6 ::1::1 ::1 1 2\r\n", "PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n",
    "PROXY TCP6 [::1] ::1 1 2\r\n", "PROXY TCP6 12345::1 ::1 1 2\r\n", "PROXY TCP4 192.0.2.1 192.0.2.2 65536 2\r\n",
    "PROXY TCP4 192.0.2.1 192.0.2.2 1 65536\r\n", "PROXY TCP4 192.0.2.1 192.0.2.2 01 2\r\n",
    "PROXY TCP4 192.0.2.1 192.0.2.2 -1 2\r\n", "PROXY TCP4 192.0.2.1 192.0.2.2 +1 2\r\n",
    "PROXY TCP4 192.0.2.1 192.0.2.2 a 2\r\n", "PROXY TCP4 192.0.2.1 192.0.2.2 123456 2\r\n",
    "PROXY TCP4 192.0.2.1 192.0.2.2 1 \r\n", "PROXY TCP6 #{"1" * 80} ::1 1 2\r\n"
  ].freeze
  WRONG.each { |header| define_method("test_version_1_refuses_#{header.inspect}") { refuse(header) } }

  def test_version_1_is_107_bytes_at_most
    assert_nil parse("PROXY UNKNOWN #{"x" * 91}\r\n")
    refuse("PROXY UNKNOWN #{"x" * 92}\r\n")
    refuse("PROXY UNKNOWN #{"x" * 93}")
  end

  def test_version_2_addresses
    assert_equal "192.0.2.1", parse(v2(0x21, 0x11, v4))
    assert_equal "192.0.2.1", parse(v2(0x21, 0x12, v4)), "a client of HTTP/3"
    assert_equal "2001:db8::1", parse(v2(0x21, 0x21, v6))
    assert_equal "192.0.2.1", parse(v2(0x21, 0x21, v6("::ffff:192.0.2.1")))
    assert_equal "", parse(v2(0x21, 0x31, "\0" * 216))
  end

  def test_version_2_without_an_address
    assert_nil parse(v2(0x20, 0x00, "")), "a health check of the proxy's own"
    assert_nil parse(v2(0x20, 0x11, v4)), "its addresses do not count"
    assert_nil parse(v2(0x20, 0xFF, "anything")), "nor does their family"
    assert_nil parse(v2(0x21, 0x00, "")), "UNSPEC"
    assert_nil parse(v2(0x21, 0x00, "anything"))
  end

  def test_version_2_skips_what_follows_the_addresses
    assert_equal "192.0.2.1", parse(v2(0x21, 0x11, "#{v4}#{[0x04, 3].pack("Cn")}abc"))
    assert_equal "192.0.2.1", parse(v2(0x21, 0x11, v4 + ("x" * 500)))
  end

  V2_WRONG = {
    "version_1" => [0x11, 0x11, 12], "version_3" => [0x31, 0x11, 12], "command_2" => [0x22, 0x11, 12],
    "no_address_of_v4" => [0x21, 0x11, 0], "half_an_address_of_v4" => [0x21, 0x11, 11],
    "half_an_address_of_v6" => [0x21, 0x21, 35], "half_an_address_of_unix" => [0x21, 0x31, 215],
    "family_4" => [0x21, 0x41, 300], "protocol_0" => [0x21, 0x10, 300], "protocol_3" => [0x21, 0x13, 300],
    "no_family_but_a_protocol" => [0x21, 0x01, 300]
  }.freeze
  V2_WRONG.each do |what, (command, family, length)|
    define_method("test_version_2_refuses_#{what}") { refuse(v2(command, family, "x" * length)) }
  end

  def test_version_2_refuses_another_signature
    12.times do |place|
      header = v2(0x21, 0x11, v4)
      header.setbyte(place, header.getbyte(place) ^ 1)
      refuse(header)
    end
  end

  def test_version_2_is_4096_bytes_at_most
    assert_equal [4096, "192.0.2.1"], Pando::HTTP::Proxy.parse(v2(0x21, 0x11, v4 + ("x" * (4096 - 16 - 12))))
    assert_equal false, Pando::HTTP::Proxy.parse(v2(0x21, 0x11, v4 + ("x" * (4096 - 16 - 11))))
    assert_equal false, Pando::HTTP::Proxy.parse("#{SIGNATURE}\x21\x11\xFF\xFF".b), "before all of it has come"
  end
end
