# frozen_string_literal: true

require "test_helper"
require "open3"
require_relative "support/reactor_case"

# Limits that keep the reactor's work bounded, and what it counts.
class HTTPReactorOverloadTest < Minitest::Test
  include HTTPSupport::ReactorCase

  # --- connections ---

  def test_connections_of_one_address_have_a_number
    stage(max_per_address: 2)
    kept = Array.new(2) { request(GET) }
    assert_match(%r{\AHTTP/1.1 503 .*\r\nretry-after: 7\r\n.*\r\nconnection: close\r\n}m, connect.read)

    other = connect_from("127.0.0.2").tap { |client| client.write(GET) }
    3.times { |lane| @stage.take(lane % 2).then { |taken| @stage.answer(taken) } }
    [*kept, other].each { |client| assert_equal "hello", body_of(client) }

    kept.each(&:close)
    count("connections", 1)
    serves(0)
    count("shed_address", 1)
  end

  def test_an_address_far_beyond_its_number_gets_no_answer
    stage(max_per_address: 1)
    served = request(GET)
    clients = Array.new(20) { connect }
    answers = clients.map { |client| answer_or_reset(client) }
    @stage.answer(@stage.take(0))

    assert_equal "hello", body_of(served)
    assert_includes answers, ""
    assert(answers.all? { |answer| answer.empty? || answer.start_with?("HTTP/1.1 503 ") })
    count("shed_address", 20)
  end

  def test_the_table_of_addresses
    program = Support::CProgram.path("addresses", %w[http/reactor_addresses.c])
    output, status = Open3.capture2e(program, "300000", "1")

    assert_predicate status, :success?, output
    assert_equal "all hold\n", output
  end

  def test_an_idle_connection_makes_room_unless_it_asks_for_something
    stage(max_connections: 2)
    clients = Array.new(2) { request(GET) }
    clients.each do |client|
      @stage.answer(@stage.take(0))
      body_of(client)
    end
    count("idle", 2)
    @stage.ok("signal", Signal.list["STOP"])
    newcomer = request(GET)
    clients.first.write(GET)
    @stage.ok("signal", Signal.list["CONT"])
    2.times { @stage.answer(@stage.take(0)) }

    [newcomer, clients.first].each { |client| assert_equal "hello", body_of(client) }
    assert_equal "", clients.last.read
    count("evicted", 1)
  end

  def test_idle_connections_without_end_make_room_too
    stage(max_connections: 1, idle_timeout: 0)
    idle = request(GET)
    @stage.answer(@stage.take(0))
    body_of(idle)
    serves(0)

    assert_equal "", idle.read
  end

  # --- time ---

  def test_heads_that_trickle_are_refused
    stage(header_timeout: 300)
    client = request("GET / HTTP/1.1\r\nx: ")

    assert_match(%r{\AHTTP/1.1 408 }, trickle(client, "x"))
    count("refused_header_time", 1)
  end

  def test_the_next_head_has_its_time_too
    stage(header_timeout: 200)
    client = request(GET)
    @stage.answer(@stage.take(0))
    assert_equal "hello", body_of(client)
    client.write("GET /")

    assert_match(%r{\AHTTP/1.1 408 }, client.read)
  end

  def test_empty_lines_do_not_keep_a_connection
    stage(header_timeout: 200, idle_timeout: 200)
    client = request(GET)
    @stage.answer(@stage.take(0))
    assert_equal "hello", body_of(client)

    assert_match(%r{\AHTTP/1.1 4\d\d }, trickle(client, "\r\n"))
  end

  # --- what is counted ---

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

    counts("refused_malformed" => 1, "refused_too_large" => 1, "refused_unsupported" => 1, "refused_header_time" => 1,
           "refused_body_time" => 1, "requests" => 0, "accepted" => 5)
  end

  def test_counts_what_it_sheds
    stage(max_connections: 3, max_queue: 1, queue_timeout: 300)
    answers = Array.new(2) { request(GET) }.map(&:read)
    answers.each { |answer| assert_match(/\r\nretry-after: 7\r\n/, answer) }
    counts("shed_queue" => 1, "shed_queue_time" => 1, "requests" => 1, "waits" => 1)
    assert_operator @stage.stats.fetch("queue_nanoseconds"), :>=, 300_000_000

    count("connections", 0)
    Array.new(3) { request("GET") }
    assert_match(%r{\AHTTP/1.1 503 }, connect.read)
    counts("shed_connections" => 1, "shed_resources" => 0)
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

  # --- memory ---

  # What a connection has beyond this while a request is read or an answer sent goes back when it is idle.
  def test_idle_connections_cost_little
    stage(sanitizers: [], max_connections: 2000)
    grow(50) # what is made once
    before = own_memory
    grow(500)
    count("idle", 550)

    assert_operator (own_memory - before) / 500, :<, 1024
  end

  private

  def connect_from(address)
    TCPSocket.new("127.0.0.1", @listener.addr[1], address, 0).tap { |client| @clients << client }
  end

  def answer_or_reset(client)
    client.read
  rescue Errno::ECONNRESET
    ""
  end

  # The figures are those of the reactor's last turn: they may come a moment after the answer.
  def counts(expected)
    found = nil
    wait_until(timeout: 20, message: -> { "#{expected}, not #{found}" }) do
      found = @stage.stats.slice(*expected.keys)
      found == expected
    end
    assert_equal expected, found
  end

  def count(name, number) = counts(name => number)

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

  def grow(number)
    number.times do
      client = request(GET)
      @stage.answer(@stage.take(0))
      body_of(client)
    end
  end

  def own_memory
    File.read("/proc/#{@stage.tell("pid")}/smaps_rollup")
        .scan(/^Private_(?:Clean|Dirty):\s+(\d+) kB/).flatten.sum { |kilobytes| Integer(kilobytes) * 1024 }
  end
end
