# frozen_string_literal: true

require "test_helper"
require_relative "support/proxy_headers"
require_relative "support/served_work"

# Listeners behind a proxy that speaks the PROXY protocol, in direct mode.
class HTTPWorkProxyTest < Minitest::Test
  include HTTPSupport::Events
  include HTTPSupport::ProxyHeaders

  APP = ->(env) { [200, {}, ["#{env["REMOTE_ADDR"]} #{env["rack.input"].read}"]] }
  POST = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"

  def teardown
    @served&.stop
  end

  def behind_proxy(**settings)
    @served = HTTPSupport::ServedWork.new(APP, proxied: true, **settings).start
  end

  def test_the_address_that_the_proxy_gives
    behind_proxy
    { V1 => "192.0.2.1", v2(0x21, 0x21, v6) => "2001:db8::1", v2(0x21, 0x31, "x" * 216) => "127.0.0.1",
      v2(0x20, 0, "") => "127.0.0.1", "PROXY UNKNOWN\r\n" => "127.0.0.1" }.each do |header, remote|
      assert_equal "#{remote} abc", @served.exchange(header + POST).body
    end
  end

  def test_the_header_may_come_in_pieces
    behind_proxy
    socket = @served.connect
    (v2(0x21, 0x11, v4 + ("x" * 4000)) + POST).each_char.each_slice(1000) do |bytes|
      socket.write(bytes.join)
      socket.wait_readable(0.01)
    end

    assert_match(/192.0.2.1 abc\z/, socket.read)
  ensure
    socket&.close
  end

  def test_it_has_4096_bytes_at_most
    events = events_of do
      behind_proxy
      assert_equal "192.0.2.1 abc", @served.exchange(v2(0x21, 0x11, v4 + ("x" * (4096 - 16 - 12))) + POST).body
      assert_equal "", rest_of(v2(0x21, 0x11, v4 + ("x" * (4096 - 16 - 11))) + POST)
    end

    assert_equal(%w[proxy.refused], events.map(&:name))
  end

  # A close with unread input may be a reset.
  def rest_of(bytes)
    @served.exchange(bytes).bytes
  rescue Errno::ECONNRESET
    ""
  end

  def test_without_it_there_is_no_answer
    events = events_of do
      behind_proxy
      ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", "PROXY x\r\n", "\x16\x03"].each do |bytes|
        assert_predicate @served.exchange(bytes), :closed_without_answer?
      end
    end
    refused = events.select { |event| event.name == "proxy.refused" }

    assert_equal([["127.0.0.1", 1, 2]] * 3, refused.map { |event| [event[:remote], event[:slot], event[:generation]] })
  end

  def test_a_proxy_that_goes_or_says_nothing_more_gets_no_answer
    behind_proxy(header_timeout: 0.05)
    ["", "PROXY TCP", "\r\n\r\n\0", V1].each do |bytes|
      assert_predicate @served.exchange(bytes), :closed_without_answer?, "too slow"
      assert_predicate @served.exchange(bytes, finish: true), :closed_without_answer?, "cut off"
    end
    assert_equal 408, @served.exchange("#{V1}GET / HT").status
  end

  def test_elsewhere_it_is_no_request
    @served = HTTPSupport::ServedWork.new(APP).start

    [V1, v2(0x21, 0x11, v4)].each { |header| assert_equal 400, @served.exchange(header + POST).status }
  end
end
