# frozen_string_literal: true

require_relative "bench_helper"
require_relative "support/fake_server"
require "support/open_load"

# The generator's accounting, against servers whose delays are known. A busy machine makes latencies longer, never
# shorter, so they are compared with what they must be at least.
class OpenLoadTest < Minitest::Test
  def test_a_stall_counts_for_every_request_that_should_have_been_sent_meanwhile
    stalls = [0.5]
    result = load(connections: 1, rate: 100, seconds: 2) { pause(stalls.pop || 0) }

    # A client that waits would have asked once during the stall. This one meant to ask fifty times, 10 ms apart:
    # a quarter of all requests, of which the luckiest tenth of all still waited 300 ms.
    assert_equal 200, result.fast.requests
    assert_operator result.fast.worst, :>=, 499
    assert_operator result.fast.p90, :>=, 295
  end

  def test_fast_and_slow_requests_are_reported_apart
    result = load(connections: 8, rate: 100, seconds: 1, slow_share: 0.2) { |head| pause 0.1 if head.include?("/slow") }

    assert_equal 100, result.fast.requests + result.slow.requests
    assert_includes 5..40, result.slow.requests
    assert_operator result.slow.p50, :>=, 100
    assert_operator result.slow.p50, :<=, result.slow.p90
    assert_operator result.slow.p90, :<=, result.slow.p99
    assert_operator result.slow.p99, :<=, result.slow.worst
  end

  def test_what_is_meant_for_the_warm_up_does_not_count
    result = load(connections: 2, rate: 100, seconds: 1, warmup: 0.5) { nil }

    assert_equal 150, result.sent
    assert_equal 100, result.fast.requests
  end

  def test_the_same_seed_is_the_same_load
    mix = { connections: 4, rate: 200, seconds: 0.5, slow_share: 0.3, arrivals: "poisson" }
    one, same, other = [7, 7, 8].map { |seed| load(**mix, seed: seed) { nil } }

    assert_equal counts(one), counts(same)
    refute_equal counts(one), counts(other)
  end

  def test_requests_that_are_never_answered_count_with_the_age_they_reached
    result = load(connections: 2, rate: 100, seconds: 1, drain: 0.3) { :never }

    assert_equal 100, result.unanswered
    assert_equal 100, result.fast.requests
    assert_operator result.fast.p50, :>=, 790
    assert_equal 2, result.sent, "one on each connection: the others waited for it"
  end

  def test_a_request_takes_whatever_connection_is_free
    hang = [:never]
    result = load(connections: 4, rate: 100, seconds: 1, drain: 3) { hang.pop }

    assert_equal 1, result.unanswered
  end

  def test_a_bound_request_waits_for_its_own_connection
    hang = [:never]
    result = load(connections: 4, rate: 100, seconds: 1, drain: 0.5, assign: "bound") { hang.pop }

    assert_operator result.unanswered, :>, 5, "all that were bound to the connection that hangs"
    assert_operator result.fast.requests, :>, result.unanswered
  end

  def test_other_answers_than_200_are_failures
    result = load(connections: 2, rate: 100, seconds: 0.5) { "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n" }

    assert_equal 50, result.failed
    assert_equal 0, result.fast.requests
  end

  def test_a_connection_that_ends_before_its_answer_is_a_failure_and_is_replaced
    broken = ["HTTP/1.1 200 OK\r\nConnection: close\r\ncontent-length: 5\r\n\r\nab"]
    result = load(connections: 1, rate: 100, seconds: 0.5) { broken.pop }

    assert_equal 1, result.failed
    assert_equal 49, result.fast.requests
  end

  def test_connections_that_serve_one_request_are_replaced
    result = load(connections: 2, rate: 100, seconds: 0.5) { "HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nto the end" }

    assert_equal 0, result.failed
    assert_equal 50, result.fast.requests
  end

  def test_it_asks_from_one_address
    server = FakeServer.new { FakeServer::OK }
    result = Bench::OpenLoad.new(connections: 2, rate: 100, seconds: 0.2, host: 3).run(server.port)

    assert_equal 0, result.failed
    assert_equal %w[127.0.0.3], server.peers.uniq
  ensure
    server&.close
  end

  private

  def counts(result) = [result.fast.requests, result.slow.requests]

  # The block's word: nil or a number of seconds slept: the usual answer; :never: none; a String: that.
  def load(**options)
    server = FakeServer.new do |request|
      case answer = yield(request)
      when String then answer
      when :never then nil
      else FakeServer::OK
      end
    end
    Bench::OpenLoad.new(arrivals: "fixed", drain: 20, **options).run(server.port)
  ensure
    server&.close
  end
end
