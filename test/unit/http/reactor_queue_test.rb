# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/c_program"
require_relative "support/reactor_case"

# Which requests wait in the queue, which one is next, and which are refused when it is full.
class HTTPReactorQueueTest < Minitest::Test
  include HTTPSupport::ReactorCase

  def test_clients_take_turns_and_the_one_with_most_goes_without
    program = Support::CProgram.path("queue", %w[http/reactor_queue.c http/reactor_addresses.c],
                                     sanitizers: Support::CProgram::ADDRESS)
    output, status = Open3.capture2e(program)

    assert_predicate status, :success?, output
    assert_includes output, "all hold"
  end

  # A client with an address of its own.
  def asked(path, from: "127.0.0.1")
    client = TCPSocket.new("127.0.0.1", @listener.addr[1], from)
    @clients << client
    client.write("GET /#{path} HTTP/1.1\r\nhost: a\r\n\r\n")
    client
  end

  def waiting(count) = wait_until { @stage.stats.fetch("requests") == count }

  def test_a_client_that_fills_the_queue_waits_behind_its_own_requests
    stage(lanes: 0)
    5.times { |number| asked("many#{number}").tap { waiting(number + 1) } }
    asked("few", from: "127.0.0.2")
    asked("other", from: "127.0.0.3")
    waiting(7)
    @stage.open(0)
    paths = Array.new(7) { @stage.take(0).tap { |taken| @stage.answer(taken) }.path }

    assert_equal(%w[/many0 /few /other /many1 /many2 /many3 /many4], paths)
  end

  def test_when_the_queue_is_full_the_client_with_most_in_it_loses_its_newest
    stage(lanes: 0, max_queue: 3)
    clients = Array.new(3) { |number| asked("many#{number}").tap { waiting(number + 1) } }
    few = asked("few", from: "127.0.0.2")

    assert_match(%r{\AHTTP/1.1 503 }, clients.last.read)
    assert_match(%r{\AHTTP/1.1 503 }, asked("another").read, "it has most itself")
    @stage.open(0)
    3.times { @stage.answer(@stage.take(0)) }
    assert_equal(%w[hello] * 3, [*clients.first(2), few].map { |client| body_of(client) })
    assert_equal 2, @stage.stats.fetch("shed_queue")
  end

  def test_a_proxys_clients_are_told_apart_by_the_address_that_it_names
    stage(lanes: 0, max_queue: 2, proxy_protocol: 1)
    many = Array.new(2) { |number| proxied("192.0.2.1").tap { waiting(number + 1) } }
    few = proxied("192.0.2.2")

    assert_match(%r{\AHTTP/1.1 503 }, many.last.read)
    @stage.open(0)
    2.times { @stage.answer(@stage.take(0)) }
    assert_equal(%w[hello] * 2, [many.first, few].map { |client| body_of(client) })
  end

  def proxied(address) = request("PROXY TCP4 #{address} 192.0.2.9 1 80\r\n#{GET}")

  def test_a_long_queue
    stage(lanes: 0, max_queue: 1500, max_connections: 3000, files: 4096)
    clients = Array.new(1200) { request(GET) }
    waiting(1200)
    assert_equal [1200, 0], @stage.stats.values_at("queued", "shed_queue")
    @stage.open(0)
    1200.times { @stage.answer(@stage.take(0)) }

    assert(clients.all? { |client| body_of(client) == "hello" })
  end
end
