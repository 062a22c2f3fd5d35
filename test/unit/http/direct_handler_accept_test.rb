# frozen_string_literal: true

require "test_helper"
require "fcntl"
require "io/wait"
require "socket"
require "pando/http/direct_handler"
require_relative "support/served_work"

# Connections from the listener, in direct mode.
class HTTPAcceptTest < Minitest::Test
  include HTTPSupport::Events

  # A listener for which the kernel answers with an error.
  Listener = Struct.new(:error) do
    def fileno = raise(error)
  end

  def setup
    @acceptor = Pando::HTTP::DirectHandler.allocate
    @pauses = pauses = []
    @acceptor.define_singleton_method(:sleep) { |seconds| pauses << seconds }
  end

  def accepted_from(address)
    server = Socket.new(address.afamily, :STREAM)
    yield server if block_given?
    server.bind(address)
    server.listen(1)
    server.fcntl(Fcntl::F_SETFL, Fcntl::O_NONBLOCK)
    assert_nil @acceptor.accept(server), "nobody"
    client = block_given? ? TCPSocket.new("127.0.0.1", server.local_address.ip_port) : server.local_address.connect
    server.wait_readable
    descriptor, remote = @acceptor.accept(server)
    peer = IO.for_fd(descriptor)

    assert_predicate peer, :close_on_exec?
    assert_equal Fcntl::O_NONBLOCK, peer.fcntl(Fcntl::F_GETFL) & Fcntl::O_NONBLOCK
    remote
  ensure
    [peer, client, server].compact.each(&:close)
  end

  def test_somebody_and_his_address
    assert_equal "127.0.0.1", accepted_from(Addrinfo.tcp("127.0.0.1", 0))
    assert_equal "::1", accepted_from(Addrinfo.tcp("::1", 0))
    assert_nil accepted_from(Addrinfo.unix("\0pando-acceptor-test-#{Process.pid}"))
  end

  def test_an_ipv4_client_of_an_ipv6_listener
    remote = accepted_from(Addrinfo.tcp("::", 0)) { |server| server.setsockopt(:IPV6, :V6ONLY, 0) }

    assert_equal "127.0.0.1", remote
  end

  [Errno::ECONNABORTED, Errno::EPROTO, Errno::ENETUNREACH].each do |error|
    define_method("test_#{error}_is_the_clients_loss") do
      events = events_of { assert_nil @acceptor.accept(Listener.new(error)) }

      assert_empty events
      assert_empty @pauses
    end
  end

  [Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM].each do |error|
    define_method("test_#{error}_is_told_and_does_not_spin") do
      events = events_of { assert_nil @acceptor.accept(Listener.new(error)) }

      assert_equal ["accept.failed"], events.map(&:name)
      assert_equal [Pando::HTTP::DirectHandler::PAUSE], @pauses
    end
  end

  def test_an_error_of_ours_is_no_secret
    assert_raises(Errno::EBADF) { @acceptor.accept(Listener.new(Errno::EBADF)) }
  end
end
