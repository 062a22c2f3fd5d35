# frozen_string_literal: true

require "test_helper"
require_relative "support/proxy_headers"
require_relative "support/reactor_case"

# Listeners behind a proxy that speaks the PROXY protocol.
class HTTPReactorProxyTest < Minitest::Test
  include HTTPSupport::ReactorCase
  include HTTPSupport::ProxyHeaders

  def behind_proxy(**settings) = stage(proxy_protocol: 1, **settings)

  def remote_of(bytes)
    client = request(bytes)
    taken = @stage.take(0)
    @stage.answer(taken)
    assert_equal "hello", body_of(client)
    [client, taken.remote]
  end

  def test_the_address_that_the_proxy_gives
    behind_proxy
    { V1 => "192.0.2.1", v2(0x21, 0x11, v4("192.0.2.7")) => "192.0.2.7", v2(0x21, 0x21, v6) => "2001:db8::1",
      v2(0x21, 0x31, "x" * 216) => "-" }.each do |header, remote|
      assert_equal remote, remote_of(header + GET).last
    end
  end

  def test_the_connections_own_address_where_none_is_given
    behind_proxy
    ["PROXY UNKNOWN\r\n", v2(0x20, 0, ""), v2(0x21, 0, "")].each do |header|
      assert_equal "127.0.0.1", remote_of(header + GET).last
    end
  end

  def test_it_holds_for_all_requests_of_the_connection
    behind_proxy
    client, = remote_of(V1 + GET)
    client.write(GET)
    taken = @stage.take(0)

    assert_equal "192.0.2.1", taken.remote
    @stage.answer(taken)
    client.write("PROXY TCP4 198.51.100.9 198.51.100.2 56324 443\r\n#{GET}")
    assert_equal "hello", body_of(client)
    assert_match(%r{\AHTTP/1.1 400}, client.read, "a second one is no request")
  end

  def test_it_may_come_in_pieces_and_with_pipelined_requests_behind_it
    behind_proxy
    client = connect
    v2(0x21, 0x11, v4 + ("x" * 4000)).each_char.each_slice(700) do |bytes|
      client.write(bytes.join)
      switches
    end
    client.write(GET + POST)
    2.times do
      taken = @stage.take(0)
      assert_equal "192.0.2.1", taken.remote
      @stage.answer(taken)
      body_of(client)
    end
  end

  def test_without_it_there_is_no_answer
    behind_proxy
    [GET, "PROXY TCP4 1.2.3.4 5.6.7.8 0 99999\r\n#{GET}", "\x16\x03\x01", v2(0x22, 0x11, v4),
     "PROXY #{"x" * 200}"].each do |bytes|
      assert_equal "", rest_of(request(bytes)), bytes
    end
    assert_equal "192.0.2.1", remote_of(V1 + GET).last
  end

  def test_it_has_4096_bytes_at_most
    behind_proxy
    header = v2(0x21, 0x11, v4 + ("x" * (4096 - 16 - 12)))

    assert_equal [4096, "192.0.2.1"], [header.bytesize, remote_of(header + GET).last]
    assert_equal "", rest_of(request(v2(0x21, 0x11, v4 + ("x" * (4096 - 16 - 11))) + GET))
    count("refused_proxy", 1)
  end

  # A close with unread input may be a reset.
  def rest_of(client)
    client.read
  rescue Errno::ECONNRESET
    ""
  end

  def test_what_is_refused_is_counted
    behind_proxy
    [GET, "PROXY x\r\n"].each { |bytes| rest_of(request(bytes)) }
    remote_of(V1 + GET)

    assert_equal [2, 0], @stage.stats.values_at("refused_proxy", "refused_malformed")
  end

  def test_connections_are_counted_by_the_address_that_the_proxy_gives
    behind_proxy(max_per_address: 2)
    4.times { |number| remote_of(V1.sub("192.0.2.1", "192.0.2.#{number}") + GET) }
    remote_of(V1 + GET)

    assert_match(%r{\AHTTP/1.1 503 }, request(V1 + GET).read)
    assert_match(%r{\AHTTP/1.1 503 }, request(V1).read, "as soon as the address is known")
    assert_equal 2, @stage.stats.fetch("shed_address")
  end

  def test_a_network_of_64_bits_is_one_client
    behind_proxy(max_per_address: 2)
    %w[2001:db8::1 2001:db8:0:0:ffff::2].each { |address| remote_of(v2(0x21, 0x21, v6(address)) + GET) }
    remote_of(v2(0x21, 0x21, v6("2001:db8:0:1::1")) + GET)

    assert_match(%r{\AHTTP/1.1 503 }, request(v2(0x21, 0x21, v6("2001:db8::3")) + GET).read)
    count("shed_address", 1)
  end

  def test_a_proxy_that_goes_or_says_nothing_more_gets_no_answer
    behind_proxy(header_timeout: 50)
    ["", "PROXY TCP", "\r\n\r\n\0"].each do |bytes|
      assert_equal "", rest_of(request(bytes)), "too slow"
      client = request(bytes)
      client.close_write
      assert_equal "", rest_of(client), "cut off"
    end
    assert_match(%r{\AHTTP/1.1 408}, request("#{V1}GET / HT").read)
    assert_equal "", request(V1).read
  end

  def test_a_drain_does_not_wait_for_a_silent_client
    behind_proxy
    silent = connect
    introduced = request(V1)
    busy = request(V1 + GET)
    taken = @stage.take(0)
    @stage.ok("drain")

    assert_equal ["", ""], [silent.read, introduced.read]
    @stage.answer(taken)
    body_of(busy)
    assert_equal 0, @stage.wait
  end

  def test_elsewhere_it_is_no_request
    stage
    [V1, v2(0x21, 0x11, v4)].each do |header|
      assert_match(%r{\AHTTP/1.1 400}, request(header + GET).read)
    end
  end
end
