# frozen_string_literal: true

require "test_helper"
require "pando/cluster"
require "pando/native"
require "socket"

# How a reactor is started and ends; what it does is in reactor_test.rb, what process it is in reactor_process_test.rb.
class HTTPReactorBindingTest < Minitest::Test
  Reactor = Pando::HTTP::Reactor
  SETTINGS = { max_header_bytes: 65_536, max_target_bytes: 8192, max_headers: 100, max_body_bytes: nil,
               body_memory: 114_688, response_memory: 262_144, response_memory_total: 1_000_000, spool_total: 1_000_000,
               buffer_memory: 10_000_000, spool_in_memory: false,
               header_timeout: 10.0, body_timeout: 30, idle_timeout: 75.0, write_timeout: 30.0,
               max_connections: nil, pools: [[nil, nil, []]], max_requests: nil, retry: true,
               retry_after: 5, ready_path: nil, live_path: nil, max_connections_per_address: nil,
               stream_bodies: [], access_log: nil }.freeze
  Settings = Struct.new(*SETTINGS.keys, keyword_init: true)

  def setup
    @channel = Pando::HTTP::Channel.create
    @monitor, @link = UNIXSocket.pair(:SEQPACKET)
    @listener = TCPServer.new("127.0.0.1", 0)
    @wake, @waker = IO.pipe
  end

  def teardown
    [@monitor, @link, @listener, @wake, @waker].each { |io| io.close unless io.closed? }
  end

  def test_runs_until_it_is_drained_whatever_signals_come
    pid = start
    assert_equal [Reactor::READY, 0, 0, 0, 0, 0], record
    %w[TERM INT URG].each { |name| Process.kill(name, pid) }
    client = TCPSocket.new("127.0.0.1", @listener.addr[1])
    client.write("bad\r\n\r\n")

    assert_match(%r{\AHTTP/1.1 400}, client.read)
    assert_equal [1, 1], @channel.stats.values_at("accepted", "refused_malformed")
    client.close
    @monitor.send([Reactor::DRAIN, 0, 0, 0, 0, 0].pack("L6"), 0)
    assert_equal [Reactor::DRAINED_ALL, 0, 0, 0, 0, 0], record
    assert_equal Reactor::DRAINED, status(pid)
  end

  def test_ends_with_the_monitor
    pid = start
    record
    @monitor.close

    assert_equal Reactor::ORPHANED, status(pid)
  end

  def test_ends_at_a_record_of_nobody
    pid = start
    record
    @monitor.send("x", 0)

    assert_equal Reactor::CONFUSED, status(pid)
  end

  def test_settings_are_checked
    assert_raises(NoMethodError) { Reactor.fork([], @channel, @wake, @link, nil, Object.new, 1.0) }
    assert_raises(TypeError) { start(max_headers: "many") }
    assert_raises(ArgumentError) { start(header_timeout: -1) }
    assert_raises(TypeError) { Reactor.fork(nil, @channel, @wake, @link, nil, Settings.new(**SETTINGS), 1.0) }
  end

  private

  # @return [Integer] its pid
  def start(**changes)
    listener = Pando::Cluster::Listening::Listener.new(@listener)
    pid = Reactor.fork([listener], @channel, @wake, @link, "/tmp", Settings.new(**SETTINGS, **changes), 1.0)
    @link.close
    pid
  end

  def record
    assert @monitor.wait_readable(90), "no record from the reactor"
    @monitor.recv(100).unpack("L6")
  end

  def status(pid)
    Process.wait2(pid).last.exitstatus
  end
end
