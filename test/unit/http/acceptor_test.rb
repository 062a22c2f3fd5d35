# frozen_string_literal: true

require "test_helper"
require "pando/http/acceptor"
require_relative "support/fake_worker"

class HTTPAcceptorTest < Minitest::Test
  include HTTPSupport::Events

  # A listener whose accept does what it is told.
  Listener = Struct.new(:outcome) do
    def accept_nonblock(exception:)
      raise outcome if outcome.is_a?(Class)

      exception ? flunk : outcome
    end
  end

  def setup
    @acceptor = Pando::HTTP::Acceptor.new
    @pauses = pauses = []
    @acceptor.define_singleton_method(:sleep) { |seconds| pauses << seconds }
  end

  def test_somebody_and_his_address
    address = Addrinfo.tcp("127.0.0.1", 1)

    assert_equal [:socket, address], @acceptor.accept(Listener.new([:socket, address]))
  end

  def test_nobody
    assert_nil @acceptor.accept(Listener.new(:wait_readable))
  end

  def test_listeners_that_return_no_address
    TCPServer.open("127.0.0.1", 0) do |server|
      client = TCPSocket.new("127.0.0.1", server.addr[1])
      server.wait_readable
      socket, address = @acceptor.accept(server)

      assert_equal client.addr[1], address.ip_port
    ensure
      [client, socket].compact.each(&:close)
    end
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
      assert_equal [Pando::HTTP::Acceptor::PAUSE], @pauses
    end
  end

  def test_an_error_of_ours_is_no_secret
    assert_raises(Errno::EBADF) { @acceptor.accept(Listener.new(Errno::EBADF)) }
  end
end
