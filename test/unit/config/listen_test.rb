# frozen_string_literal: true

require "test_helper"
require "pando/config"

class ListenTest < Minitest::Test
  Listen = Pando::Config::Listen

  RIGHT = {
    "127.0.0.1:80" => [:tcp, "127.0.0.1", 80, nil],
    "tcp://example.org:80" => [:tcp, "example.org", 80, nil],
    "8080" => [:tcp, "0.0.0.0", 8080, nil],
    8080 => [:tcp, "0.0.0.0", 8080, nil],
    ":8080" => [:tcp, "0.0.0.0", 8080, nil],
    "*:0" => [:tcp, "0.0.0.0", 0, nil],
    "[::1]:80" => [:tcp, "::1", 80, nil],
    "tcp://[fe80::1%eth0]:80" => [:tcp, "fe80::1%eth0", 80, nil],
    "unix:tmp/a.sock" => [:unix, nil, nil, "tmp/a.sock"],
    "unix:///tmp/a.sock" => [:unix, nil, nil, "/tmp/a.sock"],
    "unix:@name" => [:abstract, nil, nil, "name"]
  }.freeze

  WRONG = {
    "localhost" => "the port is missing",
    "localhost:" => "the port is missing",
    "[::1]" => "an IPv6 address is written [v6]:PORT",
    "::1:80" => "an IPv6 address is written [v6]:PORT",
    "127.0.0.1:70000" => "a port is a number from 0 to 65535",
    99_999 => "a port is a number from 0 to 65535",
    "127.0.0.1:http" => "it cannot be parsed",
    "127.0.0.1:80 " => "it cannot be parsed",
    "a:80\nb:81" => "it cannot be parsed",
    "" => "it cannot be parsed",
    "/tmp/a.sock" => "a socket's path is written unix:/tmp/a.sock",
    "unix:" => "the path is missing",
    "unix:@" => "the name is missing",
    "unix:a\0b" => "it contains a NUL",
    nil => "it is neither text nor a port",
    "unix:#{"a" * 108}" => "#{"a" * 108} is longer than 107 bytes"
  }.freeze

  def test_right_addresses
    RIGHT.each do |address, expected|
      listen = Listen.parse(address)

      assert_equal expected, [listen.kind, listen.host, listen.port, listen.path], address.inspect
      assert_equal listen, Listen.parse(listen.to_s)
      assert_predicate listen, :frozen?
    end
  end

  def test_the_proxy_protocol_is_each_listeners_own
    assert_equal([true, false], [Listen.parse(80, proxy_protocol: true), Listen.parse(80)].map(&:proxy_protocol))
    %w[80 unix:a unix:@a].each { |address| assert Listen.parse(address).takes?(:proxy_protocol) }
  end

  def test_wrong_addresses
    WRONG.each do |address, message|
      error = assert_raises(ArgumentError, address.inspect) { Listen.parse(address) }

      assert_equal message, error.message
    end
  end

  def test_the_longest_path_fits
    assert_equal 107, Listen.parse("unix:#{"a" * 107}").path.bytesize
  end

  def test_defaults_of_the_options_are_those_of_the_table
    options = Pando::Config::Settings[:listen].options

    assert_equal Listen::DEFAULTS, options.transform_values(&:default)
    assert_equal(Listen::DEFAULTS.values, Listen::DEFAULTS.keys.map { |name| Listen.parse(80).public_send(name) })
  end

  def test_options_of_the_kinds
    takes = [80, "unix:a", "unix:@a"].map { |one| Listen::DEFAULTS.keys.select { |name| Listen.parse(one).takes?(name) } }

    own = [%i[tcp_nodelay defer_accept], %i[mode umask], []]

    assert_equal(own.map { |names| %i[backlog proxy_protocol] + names }, takes)
  end

  def test_a_relative_path_counts_from_a_directory_and_keeps_its_options
    listen = Listen.parse("unix:a.sock", mode: 0o600).in("/srv")

    assert_equal ["/srv/a.sock", 0o600], [listen.path, listen.mode]
    assert_equal "unix:@a", Listen.parse("unix:@a").in("/srv").to_s
  end

  def test_equality_is_by_address
    assert_equal 1, [Listen.parse(80), Listen.parse("0.0.0.0:80", backlog: 1)].uniq.size
    refute_equal Listen.parse(80), Listen.parse(81)
  end

  def test_kinds
    assert_equal([true, false, false], [80, "unix:a", "unix:@a"].map { |one| Listen.parse(one).tcp? })
    assert_equal([false, true, true], [80, "unix:a", "unix:@a"].map { |one| Listen.parse(one).unix? })
  end
end
