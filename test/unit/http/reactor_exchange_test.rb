# frozen_string_literal: true

require "test_helper"
require "pando/native"
require "pando/histogram"
require_relative "support/reactor_case"

# What the reactor counts of each request and its answer: each once, whoever answered and whatever became of the client.
class HTTPReactorExchangeTest < Minitest::Test
  include HTTPSupport::ReactorCase

  METHODS = %w[GET HEAD POST PUT PATCH DELETE OPTIONS other].freeze

  # @return [Hash{String => Hash{Integer => Integer}}] by method and class of status, without those that are 0
  def answers(pool = 0)
    METHODS.each_with_index.filter_map do |method, number|
      counts = @stage.answers(pool, number).each_with_index.to_h { |count, kind| [kind, count] }.select { |_, n| n > 0 }
      [method, counts] if counts.any?
    end.to_h
  end

  def assert_answers(expected, pool = 0)
    wait_until(message: -> { "#{expected}, not #{answers(pool)}" }) { answers(pool) == expected }
  end

  def ask(method, status, lane: 0)
    client = request("#{method} /x HTTP/1.1\r\nhost: a\r\n\r\n")
    taken = @stage.take(lane)
    @stage.data(taken, "HTTP/1.1 #{status} Whatever\r\ncontent-length: 0\r\n\r\n")
    @stage.finish(taken)
    client.readline
  end

  def test_by_method_and_class_of_status
    stage
    METHODS.first(7).each_with_index { |method, number| ask(method, [200, 204, 302, 404, 500, 201, 599][number]) }
    2.times { ask("PROPFIND", 207) }
    ask("get", 200)

    assert_answers({ "GET" => { 2 => 1 }, "HEAD" => { 2 => 1 }, "POST" => { 3 => 1 }, "PUT" => { 4 => 1 },
                     "PATCH" => { 5 => 1 }, "DELETE" => { 2 => 1 }, "OPTIONS" => { 5 => 1 }, "other" => { 2 => 3 } })
    counts("durations" => 10, "waits" => 10, "answers" => 10)
  end

  def test_an_interim_answer_is_not_the_answer
    stage
    client = request(GET)
    taken = @stage.take(0)
    @stage.interim(taken, "HTTP/1.1 103 Early Hints\r\n\r\n")
    @stage.answer(taken)
    assert_match(/103/, client.readline)

    assert_answers({ "GET" => { 2 => 1 } })
  end

  def test_what_the_reactor_refuses_counts_too
    stage(max_body_bytes: 10, header_timeout: 200)
    request("bad\r\n\r\n").read
    request("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 11\r\n\r\n").read
    request("GET / HTTP/1.1\r\nhost").read

    assert_answers({ "POST" => { 4 => 1 }, "other" => { 4 => 2 } })
    counts("durations" => 0, "answers" => 3)
  end

  def test_what_is_shed_counts_for_its_pool
    stage(lanes: 0, pools: 2, pool_paths: "1/reports", max_queue: 1, queue_timeout: 300)
    clients = Array.new(2) { request("GET /reports HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n") }
    clients.each { |client| assert_match(/ 503 /, client.read) }

    assert_answers({ "GET" => { 5 => 2 } }, 1)
    assert_empty answers
  end

  # Without it the queue would look shorter the more requests wait in vain.
  def test_who_waits_in_vain_counts_with_the_time_of_the_wait
    stage(lanes: 0, max_queue: 2, queue_timeout: 300)
    waiting, leaver = Array.new(2) { request(GET) }
    counts("requests" => 2)
    assert_match(/ 503 /, request(GET).read) # at once: it has not waited
    reset(leaver)
    assert_match(/ 503 /, waiting.read)

    assert_answers({ "GET" => { 4 => 1, 5 => 2 } })
    counts("durations" => 2, "waits" => 2, "answers" => 3)
  end

  def test_health_checks_do_not_count
    stage(ready_path: "/up")
    assert_match(/ 503 /, request("GET /up HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").read)

    counts("health_unwell" => 1, "answers" => 0)
  end

  def test_silent_clients_do_not_count
    stage(header_timeout: 100)
    connect.read
    counts("connections" => 0, "answers" => 0)
  end

  def test_a_client_that_leaves_has_the_status_499
    stage
    leaver = request(GET)
    @stage.take(0)
    reset(leaver)

    assert_answers({ "GET" => { 4 => 1 } })
  end

  # It left in the middle of an answer, whose status it has read.
  def test_a_client_that_leaves_later_has_the_answers_status
    stage
    client = request(GET)
    taken = @stage.take(0)
    @stage.data(taken, "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n")
    client.readline
    reset(client)

    assert_answers({ "GET" => { 2 => 1 } })
  end

  def test_a_retried_request_counts_once
    stage
    client = request(GET)
    @stage.take(0)
    @stage.ok("dead", 0, DIED)
    @stage.answer(@stage.take(1))
    body_of(client)

    assert_answers({ "GET" => { 2 => 1 } })
    counts("durations" => 1, "answers" => 1)
  end

  def test_a_lost_request_counts_once
    stage
    client = request(POST)
    @stage.take(0)
    @stage.ok("dead", 0, DIED)
    assert_match(/ 502 /, client.read)

    assert_answers({ "POST" => { 5 => 1 } })
  end

  def test_a_socket_that_the_application_takes_is_a_change_of_protocol
    stage
    request(GET)
    taken = @stage.take(0)
    @stage.want("socket", taken)

    assert_answers({ "GET" => { 1 => 1 } })
    counts("durations" => 1)
  end

  def test_a_worker_says_which_status_it_has_sent_itself
    stage(stream_paths: "/uploads")
    post = "POST /uploads HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\n"
    [201, 0, 9999].each do |status|
      request(post)
      taken = @stage.take(0)
      @stage.want("socket", taken)
      @stage.ok("abort", taken.id, status)
    end

    assert_answers({ "POST" => { 0 => 2, 2 => 1 } })
  end

  def test_a_worker_that_writes_no_status_line
    stage
    client = request(CLOSE)
    taken = @stage.take(0)
    @stage.data(taken, "HTTP/9.9 abc")
    @stage.finish(taken, keep: false)
    client.read

    assert_answers({ "GET" => { 4 => 1 } }) # the client has got no answer
  end

  def test_each_of_several_requests_on_a_connection
    stage
    client = request(GET * 3)
    3.times do
      @stage.answer(@stage.take(0))
      body_of(client)
    end

    assert_answers({ "GET" => { 2 => 3 } })
  end

  def test_bytes_of_requests_and_answers
    stage
    client = request(POST)
    @stage.answer(@stage.take(0))
    body_of(client)
    answer = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"
    counts("received_bytes" => POST.bytesize, "sent_bytes" => answer.bytesize)

    client.write(sized_post("x" * 100_000)) # by way of a file
    @stage.answer(@stage.take(0))
    body_of(client)
    counts("received_bytes" => POST.bytesize + sized_post("x" * 100_000).bytesize, "sent_bytes" => 2 * answer.bytesize)
  end

  # A slow client takes the answer long after its worker has given it.
  def test_the_duration_is_the_workers
    stage
    started = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    client = request(CLOSE)
    taken = @stage.take(0)
    ahead = send_until_it_waits(taken)
    @stage.finish(taken, keep: false)
    counts("responses" => 1, "durations" => 0)
    most = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - started
    assert_operator client.read.bytesize, :>=, ahead
    counts("durations" => 1)

    assert_includes 1..most, @stage.stats.fetch("nanoseconds")
  end

  # @return [Integer] bytes sent when the client's socket takes no more
  def send_until_it_waits(taken)
    @stage.data(taken, "HTTP/1.1 200 OK\r\n\r\n")
    sent = 0
    while @stage.stats.fetch("response_bytes").zero?
      @stage.data(taken, "x" * 20_000)
      sent += 20_000
    end
    sent
  end
end
