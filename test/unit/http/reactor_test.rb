# frozen_string_literal: true

require "test_helper"
require_relative "support/reactor_case"

# Connections that last, limits, and how the reactor itself begins and ends.
class HTTPReactorTest < Minitest::Test
  include HTTPSupport::ReactorCase

  # --- keep-alive ---

  def test_answers_a_request
    stage
    client = request(GET)
    taken = @stage.take(0)

    assert_equal [GET, "", "127.0.0.1", false], [taken.head, taken.body, taken.remote, taken.last?]
    @stage.answer(taken)
    assert_equal "hello", body_of(client)
  end

  def test_keeps_a_connection
    stage
    client = connect
    3.times do |number|
      client.write("GET /#{number} HTTP/1.1\r\nhost: a\r\n\r\n")
      taken = @stage.take(0)
      assert_equal "/#{number}", taken.path
      @stage.answer(taken, "body #{number}")
      assert_equal "body #{number}", body_of(client)
    end
  end

  def test_closes_when_client_or_worker_says_so
    stage
    [[CLOSE, true], ["GET / HTTP/1.0\r\n\r\n", true], [GET, false]].each do |text, keep|
      client = request(text)
      taken = @stage.take(0)
      assert_equal text != GET, taken.last?
      @stage.answer(taken, keep: keep)
      assert client.read.end_with?("hello")
    end
  end

  def test_keeps_an_old_connection_if_the_client_asks_for_it
    stage
    client = request("GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n")
    2.times do
      taken = @stage.take(0)
      refute taken.last?
      @stage.answer(taken)
      body_of(client)
      client.write("GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n")
    end
  end

  def test_limits_the_requests_of_a_connection
    stage(max_requests: 2)
    client = request(GET + GET + GET)
    lasts = Array.new(2) { @stage.take(0).tap { |taken| @stage.answer(taken) }.last? }

    assert_equal [false, true], lasts
    assert_equal 2, client.read.scan("HTTP/1.1 200").size
  end

  def test_answers_pipelined_requests_one_after_the_other
    stage
    client = request((1..3).map { |number| "GET /#{number} HTTP/1.1\r\nhost: a\r\n\r\n" }.join)
    3.times do
      taken = @stage.take(0)
      assert_nil @stage.take(1, patience: 0.05)
      @stage.answer(taken, taken.path)
    end

    assert_equal %w[/1 /2 /3], Array.new(3) { body_of(client) }
  end

  def test_pipelined_bodies_of_all_kinds
    stage
    sized = "POST /s HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\n12345"
    chunked = "POST /c HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n" \
              "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nt: 1\r\n\r\n"
    client = request(sized + chunked + sized + chunked + GET)
    bodies = Array.new(5) do
      taken = @stage.take(0)
      assert_equal taken.path == "/c", taken.chunked?
      @stage.answer(taken, taken.path)
      body_of(client)
      taken.body
    end

    assert_equal ["12345", "abcde", "12345", "abcde", ""], bodies
  end

  def test_the_end_of_the_clients_sending_is_not_the_end_of_the_connection
    stage
    client = request(GET)
    client.close_write
    @stage.answer(@stage.take(0))

    assert client.read.end_with?("hello")
  end

  # --- limits ---

  def test_the_queue_has_a_time
    stage(queue_timeout: 100)
    client = request(GET)

    assert_match(%r{\AHTTP/1.1 503 .*retry-after: \d+\r\n}m, client.read)
    assert_nil @stage.take(0, patience: 0)
  end

  def test_time_in_the_queue_ends_when_a_worker_takes_it
    stage(queue_timeout: 1000)
    first = request(GET)
    taken = @stage.take(0)
    assert_match(%r{\AHTTP/1.1 503 }, request(GET).read)
    @stage.answer(taken)

    assert_equal "hello", body_of(first)
  end

  def test_the_queue_has_a_length
    stage(max_queue: 2)
    clients = Array.new(3) { request(GET) }
    refused = IO.select(clients, nil, nil, 20).first.first
    assert_match(%r{\AHTTP/1.1 503 }, clients.delete(refused).read)
    clients.each do |client|
      @stage.answer(@stage.take(0))
      assert_equal "hello", body_of(client)
    end
  end

  def test_connections_have_a_number
    stage(max_connections: 2)
    kept = Array.new(2) { |number| request("GET /#{number} HTTP/1.1\r\nhost: a\r\n\r\n") }
    requests = Array.new(2) { |lane| @stage.take(lane) }.sort_by(&:path)
    assert_match(%r{\AHTTP/1.1 503 }, connect.read)
    requests.zip(kept) do |taken, client|
      @stage.answer(taken)
      assert_equal "hello", body_of(client)
    end

    serves(0) # in place of the one that is idle for longest
    assert_equal([true, nil], kept.map { |client| client.wait_readable(0) && client.eof? })
  end

  def test_descriptors_that_run_out
    skip "the program that runs the stage needs some for itself" if HTTPSupport::ReactorStage.under.any?
    stage(files: 48)
    clients = Array.new(48) { |number| request("GET /#{number} HTTP/1.1\r\nhost: a\r\n\r\n") }
    48.times { @stage.take(0).then { |taken| @stage.answer(taken, taken.path) } }

    # Those that are answered may be closed for those that wait.
    assert_equal(Array.new(48) { |number| "/#{number}" }, clients.map { |client| body_of(client) })
  end

  # --- UNIX sockets ---

  def test_a_unix_socket
    Dir.mktmpdir do |folder|
      listener = UNIXServer.new(File.join(folder, "socket"))
      listener.fcntl(Fcntl::F_SETFL, listener.fcntl(Fcntl::F_GETFL) | Fcntl::O_NONBLOCK)
      @stage = HTTPSupport::ReactorStage.new(listener)
      @stage.open(0)
      client = UNIXSocket.new(listener.path).tap { |socket| @clients << socket }
      client.write(GET)
      client.close_write
      taken = @stage.take(0)
      assert_equal "-", taken.remote
      @stage.answer(taken)
      assert client.read.end_with?("hello")
      listener.close
    end
  end

  # --- order of waking ---

  def test_the_last_to_fall_idle_is_woken_first
    stage(lanes: 0)
    @stage.open(1, 2, 3)
    [2, 1, 3].each { |lane| assert_equal "1", @stage.tell("sleep", lane) }
    request(GET)
    wait_until { awake_in_turn(3, 1, 2).positive? }
    request(GET)
    wait_until { awake_in_turn(3, 1, 2) > 1 }
  end

  def test_one_that_steps_back_is_woken_last
    stage(lanes: 0)
    @stage.open(1, 2, 3)
    [1, 2, 3].each { |lane| assert_equal "1", @stage.tell("sleep", lane) }
    @stage.ok("step_back", 3)
    3.times do |before|
      request(GET)
      wait_until { awake_in_turn(2, 1, 3) > before }
    end
  end

  # The reactor does not wait for a worker that does not come: the next one may be awake already.
  # @return [Integer] how many
  def awake_in_turn(*lanes)
    asleep = lanes.reverse.map { |lane| @stage.tell("asleep", lane) }.reverse # one that wakes meanwhile was looked at

    assert_equal asleep.sort, asleep
    asleep.count("0")
  end

  def test_a_wake_up_that_is_lost_with_its_worker
    stage
    assert_equal "1", @stage.tell("sleep", 1)
    assert_equal "1", @stage.tell("sleep", 0)
    client = request(GET)
    wait_until { @stage.tell("asleep", 0) == "0" }
    @stage.ok("close", 0)
    wait_until { @stage.tell("asleep", 1) == "0" }
    @stage.answer(@stage.take(1))

    assert_equal "hello", body_of(client)
  end

  # --- the reactor's own end ---

  def test_drains
    stage
    idle = request(GET)
    @stage.answer(@stage.take(0))
    body_of(idle)
    served = request(GET)
    taken = @stage.take(0)
    half = request("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\na")
    @stage.ok("drain")

    assert_equal "", idle.read
    assert_nil served.wait_readable(0)
    half.write("bc")
    posted = @stage.take(1)
    assert posted.last?
    [taken, posted].each { |request| @stage.answer(request) }
    [served, half].each { |client| assert client.read.end_with?("hello") }
    assert_equal "record 17 0", @stage.tell("report")
    assert_equal 0, @stage.wait
  end

  def test_drains_what_has_already_connected
    stage
    @stage.ok("signal", Signal.list["STOP"])
    clients = Array.new(100) { request(GET) }
    @stage.ok("drain")
    @stage.ok("signal", Signal.list["CONT"])
    100.times { @stage.answer(@stage.take(0)) }

    clients.each { |client| assert client.read.end_with?("hello") }
    assert_equal 0, @stage.wait
  end

  # The answer was complete before anybody knew of an end, and it said nothing of it.
  def test_drains_a_client_that_still_reads
    stage(spool_total: 0)
    slow = request(GET)
    taken = @stage.take(0)
    fill_ring(taken, sent = +"")
    @stage.finish(taken)
    part = +""
    # It may have read all before the reactor knows that the answer is complete.
    until @stage.stats["in_flight"].zero?
      part << slow.readpartial(10_000) if slow.wait_readable(0.05)
    end
    @stage.ok("drain")

    assert_equal sent, part + Timeout.timeout(20) { slow.read }
    assert_equal 0, @stage.wait
  end

  def test_drains_what_was_sent_ahead
    stage
    client = request(GET * 2)
    taken = @stage.take(0)
    silent = connect
    @stage.ok("drain")
    assert_equal "", silent.read # by now it knows
    @stage.answer(taken)
    assert_equal "hello", body_of(client)
    last = @stage.take(0)
    assert_predicate last, :last?
    @stage.answer(last)

    assert_equal "hello", body_of(client)
    assert_equal ["", 0], [client.read, @stage.wait]
  end

  def test_drains_and_refuses_later_clients
    stage
    served = request(GET)
    taken = @stage.take(0)
    @stage.ok("drain")
    wait_until(message: "a refusal") { refused? }
    @stage.answer(taken)

    assert_equal "hello", body_of(served)
    assert_equal 0, @stage.wait
  end

  def refused?
    connect && false
  rescue Errno::ECONNREFUSED, Errno::ECONNRESET
    true
  end

  def test_drains_what_no_worker_is_left_for
    stage
    waiting = request(GET)
    half = request("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\na")
    @stage.ok("drain")
    (0..1).each { |lane| @stage.ok("close", lane) }

    assert_match(%r{\AHTTP/1.1 503 }, waiting.read)
    half.write("bc")
    assert_match(%r{\AHTTP/1.1 503 }, half.read)
    assert_equal 0, @stage.wait
  end

  def test_ends_with_its_monitor
    stage
    idle = connect
    served = request(GET)
    taken = @stage.take(0)
    @stage.ok("hangup")
    assert_equal "", idle.read
    @stage.answer(taken)

    assert served.read.end_with?("hello")
    assert_equal 2, @stage.wait
  end

  def test_an_orphan_does_not_wait_for_ever
    stage
    request(GET)
    @stage.take(0)
    @stage.ok("hangup")

    assert_equal 2, @stage.wait
  end

  def test_records_that_no_monitor_sends
    [[99, 0, 0], [2, 1, 9], [2, 5000 % 8, 5], [1, 1, 1024]].each do |record|
      stage
      @stage.ok("record", *record)
      assert_equal 3, @stage.wait
      @stage.quit
    end
  end

  def test_a_new_reactor_takes_over
    stage
    lost = request(GET)
    late = @stage.take(0)
    queued = request(GET)
    wait_until { @stage.tell("waiting") == "1" }
    @stage.ok("signal", Signal.list["KILL"])
    assert_equal(-9, @stage.wait)
    [lost, queued].each { |client| assert_raises(Errno::ECONNRESET, EOFError) { client.readpartial(1) } }

    @stage.ok("start")
    @stage.await("record 16 0") { @stage.tell("report") }
    @stage.open(0, 1)
    @stage.data(late, "HTTP/1.1 200 OK\r\n\r\nlate") # nobody's
    @stage.finish(late)
    assert_nil @stage.take(1, patience: 0)
    serves(0)
    serves(1)
  end

  def test_nothing_wakes_an_idle_reactor
    stage
    client = request(GET)
    @stage.answer(@stage.take(0))
    body_of(client)
    before = switches
    IO.select(nil, nil, nil, 0.5)

    assert_operator switches - before, :<=, 2
  end

  def test_many_connections_at_once
    stage
    clients = Array.new(300) { connect }
    clients.each_with_index { |client, number| client.write("GET /#{number} HTTP/1.1\r\nhost: a\r\n\r\n") }
    300.times { |number| @stage.take(number % 2).then { |taken| @stage.answer(taken, taken.path) } }

    assert_equal(Array.new(300) { |number| "/#{number}" }, clients.map { |client| body_of(client) })
  end
end
