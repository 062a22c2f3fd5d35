# frozen_string_literal: true

require_relative "bench_helper"
require_relative "support/fake_server"
require "io/wait"
require "support/slow_clients"

class SlowClientsTest < Minitest::Test
  def teardown
    @server&.close
  end

  def test_each_kind_sends_whole_requests_in_pieces_and_begins_again
    seen = Queue.new
    serve { |request| seen << request }
    fates = Bench::SlowClients.run(@server.port, heads: 1, bodies: 1, readers: 1, pace: 0.02, pieces: 4) do |clients|
      assert_predicate clients, :all?
      wait_until { seen.size >= 12 }
    end
    requests = Array.new(seen.size) { seen.pop }

    assert_equal(0, fates.values.sum { |kind| kind[:refused] + kind[:cut] })
    %i[heads bodies readers].each { |kind| assert_operator fates[kind][:answered], :>, 0 }
    assert_equal 16_384, requests.find { |request| request.start_with?("POST") }.split("\r\n\r\n", 2).last.bytesize
    assert_includes requests.map { |request| request[/ (\S+)/, 1] }, "/large"
  end

  def test_idle_connections_are_kept_and_answer_when_poked
    serve { nil }
    fates = Bench::SlowClients.run(@server.port, idle: 20, hosts: 3) do |clients|
      assert_predicate clients, :all?
      assert_equal 5, clients.poke(5)
    end

    assert_equal({ answered: 25, refused: 0, cut: 0, open: 20 }, fates[:idle])
  end

  def test_refusals_and_broken_connections_are_counted
    seen = Queue.new
    serve do |request|
      seen << request
      request.start_with?("POST") ? answer("200 OK", 9) : answer("408 Request Timeout", 0)
    end
    fates = Bench::SlowClients.run(@server.port, heads: 1, bodies: 1, pace: 0.02, pieces: 2) do
      wait_until { seen.size >= 10 }
    end

    assert_operator fates[:heads][:refused], :>, 0
    assert_operator fates[:bodies][:cut], :>, 0
    assert_equal([0, 0], fates.slice(:heads, :bodies).values.map { |kind| kind[:answered] })
  end

  private

  # Without its body.
  def answer(status, length) = "HTTP/1.1 #{status}\r\ncontent-length: #{length}\r\nconnection: close\r\n\r\n"

  def serve
    @server = FakeServer.new do |request|
      answer = yield(request)
      answer.is_a?(String) ? answer : FakeServer::OK
    end
  end
end
