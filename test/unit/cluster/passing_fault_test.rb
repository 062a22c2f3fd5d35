# frozen_string_literal: true

require "test_helper"
require "socket"
require "pando/errors"
require "pando/cluster/monitor"

class ClusterPassingFaultTest < Minitest::Test
  def passing?(error) = Pando::Cluster::PassingFault.of?(error)

  def caught
    yield
  rescue Exception => e # rubocop:disable Lint/RescueException
    e
  end

  def test_what_the_kernel_refuses
    [Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM, Errno::EAGAIN, NoMemoryError].each { |kind| assert passing?(kind.new) }
    assert passing?(ThreadError.new("can't create Thread: Resource temporarily unavailable"))
    refute passing?(ThreadError.new("deadlock"))
  end

  def test_a_server_out_of_reach
    server = TCPServer.new("127.0.0.1", 0)
    port = server.addr[1]
    server.close

    assert passing?(caught { TCPSocket.new("127.0.0.1", port) })
    assert passing?(SocketError.new("getaddrinfo: Name or service not known"))
  end

  def test_what_caused_it_counts
    error = caught do
      raise Errno::ECONNREFUSED
    rescue SystemCallError
      raise Pando::Error, "a hook"
    end

    assert passing?(error)
  end

  def test_a_fault_of_the_application
    [ArgumentError, KeyError, Errno::ENOENT, Errno::EACCES, LoadError].each { |kind| refute passing?(kind.new) }
    refute passing?(Pando::BootError.new("no database is configured"))
  end

  # By their names: none of these libraries is loaded here.
  def test_errors_of_client_libraries
    base = Class.new(StandardError) { def self.name = "RedisClient::ConnectionError" }

    assert passing?(Class.new(base).new)
    refute passing?(Class.new(StandardError) { def self.name = "RedisClient::CommandError" }.new)
  end
end
