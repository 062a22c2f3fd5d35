# frozen_string_literal: true

require "test_helper"
require_relative "support/reactor_case"

# What the reactor counts, for the monitor to read.
class HTTPReactorStatsTest < Minitest::Test
  include HTTPSupport::ReactorCase

  def test_counts_what_goes_well
    stage
    client = connect
    3.times do
      client.write(GET)
      @stage.answer(@stage.take(0))
      body_of(client)
    end
    counts("accepted" => 1, "connections" => 1, "idle" => 1, "in_flight" => 0, "requests" => 3, "responses" => 3,
           "waits" => 3)
    assert_operator @stage.stats.fetch("queue_nanoseconds"), :>, 0

    client.write(GET)
    taken = @stage.take(0)
    counts("idle" => 0, "in_flight" => 1, "requests" => 4, "responses" => 3)
    @stage.answer(taken, keep: false)
    client.read
    counts("connections" => 0, "in_flight" => 0, "responses" => 4)
  end

  def test_counts_refusals_by_their_reason
    stage(max_body_bytes: 10, header_timeout: 200, body_timeout: 200)
    post = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: "
    ["bad\r\n\r\n", "#{post}11\r\n\r\n", "GET / HTTP/2.0\r\n\r\n", "GET", "#{post}5\r\n\r\n12"]
      .each { |text| assert_match(%r{\AHTTP/1.1 [45]}, request(text).read) }

    counts("refused_malformed" => 1, "refused_body_size" => 1, "refused_too_large" => 0, "refused_unsupported" => 1,
           "refused_header_time" => 1, "refused_body_time" => 1, "requests" => 0, "accepted" => 5)
  end

  def test_counts_what_it_sheds
    stage(max_connections: 3, max_queue: 1, queue_timeout: 300)
    answers = Array.new(2) { request(GET) }.map(&:read)
    answers.each { |answer| assert_match(/\r\nretry-after: 7\r\n/, answer) }
    counts("shed_queue" => 1, "shed_queue_time" => 1, "requests" => 1, "waits" => 1)
    assert_operator @stage.stats.fetch("queue_nanoseconds"), :>=, 290_000_000

    count("connections", 0)
    Array.new(3) { request("GET") }
    assert_match(%r{\AHTTP/1.1 503 }, connect.read)
    counts("shed_connections" => 1, "shed_resources" => 0)
  end

  def test_counts_what_no_worker_will_take_any_more
    stage(lanes: 1)
    client = request(GET)
    count("in_flight", 1)
    @stage.ok("close", 0)
    @stage.ok("drain")
    assert_match(%r{\AHTTP/1.1 503 .*\r\nretry-after: 7\r\n}m, client.read)

    counts("shed_stopping" => 1, "shed_resources" => 0)
  end

  def test_counts_what_becomes_of_lost_requests
    stage
    client = request(GET)
    @stage.take(0)
    dies(0, DIED)
    @stage.answer(@stage.take(1)) # again
    assert_equal "hello", body_of(client)
    fails(POST, SUSPECT, 502)
    fails(POST, TIMED_OUT, 504)
    client = request(GET)
    @stage.data(@stage.take(0), "HTTP/1.1 200 OK\r\n")
    client.readpartial(10)
    dies(0, DIED)
    assert_raises(Errno::ECONNRESET) { client.read }

    counts("retried" => 1, "failed_502" => 1, "failed_504" => 1, "resets" => 1, "responses" => 1, "requests" => 4)
  end

  # By a worker that leaves, whether it says so or ends without a word.
  def test_counts_streams_that_were_cut
    stage
    [->(taken) { @stage.ok("abort", taken.id, 0) }, ->(_) { dies(0, DIED) }].each do |ending|
      client = request(GET)
      taken = @stage.take(0)
      @stage.data(taken, "HTTP/1.1 200 OK\r\n")
      client.readpartial(10)
      @stage.ok("cut", taken.id)
      ending.call(taken)
      assert_raises(Errno::ECONNRESET) { client.read }
    end

    counts("streams_cut" => 2, "resets" => 0)
  end

  # It could not say that it cuts the stream: it has one thread, which was busy with it.
  def test_counts_the_stream_of_a_worker_that_was_killed_because_it_had_to_leave
    stage
    client = request(GET)
    @stage.data(@stage.take(0), "HTTP/1.1 200 OK\r\n")
    client.readpartial(10)
    dies(0, LEFT_LATE)
    assert_raises(Errno::ECONNRESET) { client.read }
    fails(GET, LEFT_LATE, 504)

    counts("streams_cut" => 1, "resets" => 0, "failed_504" => 1, "retried" => 0)
  end

  def test_counts_corrupt_lanes_and_connections_given_away
    stage
    client = request(GET)
    assert_equal "socket", @stage.want("socket", @stage.take(1)).first
    assert_equal "hello", client.readpartial(5)
    @stage.ok("spoil", 0)

    counts("hijacked" => 1, "corrupt_lanes" => 1, "connections" => 0)
  end

  def test_counts_slow_readers
    stage(write_timeout: 200)
    client = request(GET)
    taken = @stage.take(0)
    @stage.data(taken, "HTTP/1.1 200 OK\r\n\r\n")
    300.times { break unless @stage.try(taken, "x" * 30_000) == "ok" }
    count("slow_readers", 1)

    assert_raises(Errno::ECONNRESET) { client.read }
  end

  def test_a_new_reactor_goes_on_counting
    stage
    request(GET)
    @stage.take(0)
    counts("connections" => 1, "in_flight" => 1, "requests" => 1)
    @stage.ok("signal", Signal.list["KILL"])
    @stage.wait
    assert_equal [1, 1], @stage.stats.values_at("connections", "in_flight") # what was lost with it

    @stage.ok("start")
    @stage.await("record 16 0") { @stage.tell("report") }
    @stage.open(0, 1)
    serves(1)
    counts("connections" => 1, "in_flight" => 0, "requests" => 2, "responses" => 1)
  end

  private

  def dies(lane, cause)
    @stage.ok("dead", lane, cause)
    @stage.open(lane)
  end

  def fails(text, cause, status)
    client = request(text)
    @stage.take(0)
    dies(0, cause)
    assert_match(%r{\AHTTP/1.1 #{status} }, client.read)
  end
end
