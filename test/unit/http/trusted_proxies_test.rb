# frozen_string_literal: true

require "test_helper"
require "objspace"
require "pando/http"

class HTTPTrustedProxiesTest < Minitest::Test
  TrustedProxies = Pando::HTTP::TrustedProxies
  PROXY = "10.0.0.1"

  # @return [Array(String, String, String)] REMOTE_ADDR, the scheme and the port
  def apply(fields, peer: PROXY, trust: %w[private], host: "example.com", port: "80")
    env = { "REMOTE_ADDR" => peer || "127.0.0.1", "rack.url_scheme" => "http", "HTTP_HOST" => host,
            "SERVER_PORT" => port }
    env.update(fields.transform_keys { |name| "HTTP_X_FORWARDED_#{name}" })
    before = fields.values.map(&:dup)
    TrustedProxies.new(trust).apply(env, peer)
    assert_equal before, env.values.last(fields.size), "the fields stay as they were"
    env.values_at("REMOTE_ADDR", "rack.url_scheme", "SERVER_PORT")
  end

  def client(list, **options) = apply({ "FOR" => list }, **options).first
  def scheme(proto, **options) = apply({ "PROTO" => proto }, **options)[1]

  def test_nobody
    assert_nil TrustedProxies.of([])
    fields = { "FOR" => "192.0.2.1", "PROTO" => "https", "SSL" => "on" }
    assert_equal [PROXY, "http", "80"], apply(fields, trust: %w[loopback])
  end

  def test_who_is_trusted
    { "loopback" => %w[127.0.0.1 127.9.9.9 ::1],
      "private" => %w[10.9.9.9 172.31.0.1 192.168.7.7 fd00::1 fe80::1 169.254.1.1],
      "192.0.2.0/24" => %w[192.0.2.0 192.0.2.255], "2001:db8::/32" => %w[2001:db8:1::1], "192.0.2.7" => %w[192.0.2.7],
      "unix" => [nil] }.each do |name, peers|
      peers.each { |peer| assert TrustedProxies.new([name]).trust?(peer), "#{peer.inspect} is #{name}" }
    end
  end

  def test_who_is_not
    { "loopback" => ["128.0.0.1", "10.0.0.1", "::2", nil],
      "private" => ["127.0.0.1", "172.32.0.1", "11.0.0.1", "2001:db8::1", nil],
      "192.0.2.0/24" => ["192.0.3.0", "::192.0.2.1"], "unix" => ["127.0.0.1"] }.each do |name, peers|
      peers.each { |peer| refute TrustedProxies.new([name]).trust?(peer), "#{peer.inspect} is not #{name}" }
    end
  end

  def test_the_client_is_the_last_address_that_is_no_proxy_of_ours
    assert_equal "192.0.2.1", client("192.0.2.1")
    assert_equal "192.0.2.1", client("6.6.6.6, 192.0.2.1")
    assert_equal "192.0.2.1", client("6.6.6.6,192.0.2.1 ,10.0.0.2,\t10.0.0.3")
    assert_equal "10.0.0.2", client("10.0.0.2, 10.0.0.3"), "all are ours: the farthest"
  end

  def test_an_entry_that_is_no_address_ends_the_search
    assert_equal PROXY, client("unknown")
    assert_equal PROXY, client("")
    assert_equal PROXY, client(",")
    assert_equal "192.0.2.1", client("192.0.2.1,"), "RFC 9110 section 5.6.1: empty elements are ignored"
    assert_equal "10.0.0.2", client("192.0.2.1, _hidden, 10.0.0.2")
    ["192.0.2.1/24", "192.0.2", "192.0.2.256", "192.0.2.01", "192.0.2.1 6.6.6.6", "fe80::1%eth0", "[192.0.2.1]",
     "::1::", "a", "192.0.2.1:x", "192.\x000.2.1", "\xFF".b, "192.0.2.1\n6.6.6.6"].each do |entry|
      assert_equal PROXY, client(entry), entry
    end
  end

  def test_addresses_are_written_in_one_way
    { "192.0.2.1:8080" => "192.0.2.1", "[2001:DB8::1]:443" => "2001:db8::1", "[2001:db8::1]" => "2001:db8::1",
      "2001:0db8:0:0:0:0:0:1" => "2001:db8::1", "::ffff:192.0.2.1" => "192.0.2.1" }.each do |entry, address|
      assert_equal address, client(entry)
    end
  end

  def test_32_entries_are_looked_at
    proxies = (1..32).map { |host| "10.0.0.#{host}" }

    assert_equal "192.0.2.1", client(["192.0.2.1", *proxies.first(31)].join(", "))
    assert_equal "10.0.0.1", client(["192.0.2.1", *proxies].join(", "))
  end

  def test_a_made_up_list_of_proxies_costs_little
    assert_equal "10.0.0.168", client((["192.0.2.1"] + (0..199).map { |host| "10.0.0.#{host}" }).join(", "))
  end

  def test_many_clients_are_not_remembered_for_ever
    proxies = TrustedProxies.new(%w[private])
    3000.times { |number| proxies.trust?("192.0.#{number / 250}.#{number % 250}") }

    assert_operator proxies.instance_variable_get(:@known).size, :<=, TrustedProxies::KNOWN
  end

  def test_only_addresses_are_remembered
    proxies = TrustedProxies.new(%w[private])
    longest = "[0000:0000:0000:0000:0000:ffff:192.100.200.100]:65535"
    junk = Array.new(100) { |number| "#{number}#{"x" * 10_000}" } + %w[unknown 192.0.2.256] + ["1" * 54]
    (junk + ["192.0.2.1", longest]).each { |entry| proxies.apply({ "HTTP_X_FORWARDED_FOR" => entry }, PROXY) }

    assert_equal [PROXY, "192.0.2.1", longest], proxies.instance_variable_get(:@known).keys
  end

  def test_a_remembered_address_does_not_keep_the_field_that_it_came_from
    proxies = TrustedProxies.new(%w[private])
    proxies.apply({ "HTTP_X_FORWARDED_FOR" => "#{"x" * 60_000}, 2001:db8:1111:2222:3333:4444:5555:6666" }, PROXY)

    proxies.instance_variable_get(:@known).each_key { |key| refute_match(/"shared":true/, ObjectSpace.dump(key)) }
  end

  def test_the_remembered_address_is_not_the_applications
    proxies = TrustedProxies.new(%w[private])
    addresses = Array.new(2) do
      env = { "HTTP_X_FORWARDED_FOR" => "192.0.2.1" }
      proxies.apply(env, PROXY)
      env["REMOTE_ADDR"] << "x"
    end

    assert_equal %w[192.0.2.1x] * 2, addresses
  end

  def test_the_scheme
    %w[https HTTPS wss].each { |proto| assert_equal "https", scheme(proto) }
    assert_equal "https", scheme("http, https"), "the nearest proxy's word"
    assert_equal "http", scheme("https, http")
    ["http", "ws", "", ",", "httpsx", "ftp", "https;"].each { |proto| assert_equal "http", scheme(proto), proto }
    assert_equal "http", scheme("https", peer: "192.0.2.1")
  end

  def test_x_forwarded_ssl
    assert_equal "https", apply({ "SSL" => "on" })[1]
    assert_equal "http", apply({ "SSL" => "off" })[1]
    assert_equal "http", apply({ "SSL" => "on", "PROTO" => "http" })[1], "the other one says more"
  end

  def test_the_port_follows_the_scheme_where_host_names_none
    { %w[a 80] => "443", %w[a:80 80] => "80", %w[a:8443 8443] => "8443" }.each do |(host, port), expected|
      assert_equal expected, apply({ "PROTO" => "https" }, host: host, port: port).last
    end
  end

  def test_requests_without_those_fields_cost_nothing
    proxies = TrustedProxies.new(%w[private])
    env = { "REMOTE_ADDR" => PROXY }
    proxies.apply(env, PROXY)
    before = GC.stat(:total_allocated_objects)
    100.times { proxies.apply(env, PROXY) }

    assert_operator GC.stat(:total_allocated_objects) - before, :<, 50
  end
end
