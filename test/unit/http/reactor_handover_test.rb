# frozen_string_literal: true

require "test_helper"
require_relative "support/reactor_case"

# What the reactor does for clients that are handed over, informed before the
# answer, or half gone.
class HTTPReactorHandoverTest < Minitest::Test
  include HTTPSupport::ReactorCase

  HINTS = "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"

  # --- hand-over ---

  def test_the_socket_comes_behind_what_was_answered
    client, taken, sent = asked("ahead")
    read = +""
    read << client.readpartial(1 << 20) while read.bytesize < sent.bytesize

    assert_equal %w[socket ahead], @stage.receive(taken)
    assert_equal sent, read
    assert_equal "hello", client.read
  end

  def test_more_than_16_kib_ahead_are_too_much
    { 16_384 => "socket", 16_385 => "gone" }.each do |bytes, outcome|
      stage
      client = connect
      @stage.ok("signal", Signal.list["STOP"]) # all of it is to be there when the head is read
      client.write("GET / HTTP/1.1\r\nhost: a\r\n#{"x: #{"y" * 5000}\r\n" * 4}\r\n#{"z" * bytes}")
      @stage.ok("signal", Signal.list["CONT"])

      assert_equal outcome, Array(@stage.want("socket", @stage.take(0))).first
      assert_match(%r{\AHTTP/1.1 502 }, client.read) if outcome == "gone"
      @stage.quit
    end
  end

  def test_a_client_that_goes_before_it_is_handed_over
    client, taken = asked
    reset(client)

    assert_equal "gone", @stage.receive(taken)
    serves(0)
  end

  def test_a_client_that_takes_nothing_before_it_is_handed_over
    _client, taken = asked(write_timeout: 200)

    assert_equal "gone", @stage.receive(taken)
    serves(0)
  end

  def test_a_worker_that_gives_up_waiting_for_a_socket_can_serve_others
    client, taken = asked
    @stage.ok("abort", taken.id)

    assert_equal "gone", @stage.receive(taken)
    serves(0)
    assert_raises(Errno::ECONNRESET) { Timeout.timeout(20) { client.read } }
  end

  def test_a_worker_that_dies_while_it_waits_for_a_socket
    client, = asked
    @stage.ok("dead", 0, DIED)
    serves(1) # so the reactor knows

    assert_raises(Errno::ECONNRESET) { Timeout.timeout(20) { client.read } }
  end

  def test_whoever_is_handed_over_does_not_count
    stage(max_connections: 1, max_per_address: 1)
    3.times do
      request(GET)
      assert_equal "socket", @stage.want("socket", @stage.take(0)).first
    end
    @stage.ok("drain")

    assert_equal "record 17 0", @stage.tell("report")
  end

  # --- bodies that are the worker's to read ---

  def test_a_streamed_body_is_not_waited_for
    stage(stream_paths: "/up,/in/")
    head = "POST /up?x HTTP/1.1\r\nhost: a\r\ncontent-length: 50000\r\n\r\n"
    client = request("#{head}beginning")
    taken = @stage.take(0)

    assert_equal [true, true, head, ""], [taken.streamed?, taken.last?, taken.head, taken.body]
    assert_equal %w[socket beginning], @stage.want("socket", taken)
    @stage.ok("abort", taken.id)
    assert_equal "hello", client.read
  end

  def test_a_worker_that_dies_before_it_answers_on_a_streamed_requests_socket
    stage(stream_paths: "/up")
    clients = Array.new(2) { request(POST.sub("/", "/up")) }
    2.times { @stage.want("socket", @stage.take(0)) }
    @stage.ok("dead", 0, DIED)

    clients.each { |client| assert_match(%r{\AhelloHTTP/1.1 502 .*^connection: close}m, client.read) }
  end

  def test_a_worker_that_dies_once_it_answers_there
    stage(stream_paths: "/up")
    client = request(POST.sub("/", "/up"))
    taken = @stage.take(0)
    @stage.want("socket", taken)
    @stage.ok("abort", taken.id)
    @stage.ok("dead", 0, DIED)

    assert_equal "hello", client.read
  end

  def test_which_bodies_are_streamed
    stage(stream_paths: "/up,/in/")
    { "/up" => true, "/up/a" => true, "/in/" => true, "/in/a/b" => true, "/in" => false, "/u" => false,
      "/upper" => false, "/" => false, "/a/up" => false }.each do |path, streamed|
      request(POST.sub("/", path))
      taken = @stage.take(0)
      assert_equal [streamed, streamed ? "" : "abc"], [taken.streamed?, taken.body], path
      @stage.answer(taken)
    end
    request(GET.sub("/", "/up"))

    refute_predicate @stage.take(0), :streamed?
  end

  def test_a_streamed_request_that_is_answered_unread_or_whose_worker_dies
    stage(stream_paths: "/up")
    client = request(POST.sub("/", "/up"))
    @stage.answer(@stage.take(0), keep: false)
    assert_equal "hello", body_of(client)
    assert_equal "", client.read

    client = request(POST.sub("/", "/up"))
    @stage.take(0)
    @stage.ok("dead", 0, DIED)
    assert_match(%r{\AHTTP/1.1 502 }, client.read)
  end

  def test_an_announced_size_that_is_too_large_is_refused_at_once
    stage(stream_paths: "/up", max_body_bytes: 2)

    assert_match(%r{\AHTTP/1.1 413 }, request(POST.sub("/", "/up")).read)
  end

  # --- interim responses ---

  def test_an_interim_response_is_no_answer
    stage
    client = request(POST)
    taken = @stage.take(0)
    @stage.interim(taken, HINTS)
    assert_equal HINTS, client.readpartial(1000)
    @stage.ok("dead", 0, DIED)

    assert_match(%r{\AHTTP/1.1 502 }, client.read)
  end

  def test_no_second_try_after_an_interim_response
    stage
    client = request(GET)
    @stage.interim(@stage.take(0), HINTS)
    @stage.ok("dead", 0, DIED)

    assert_match(%r{\A#{Regexp.escape(HINTS)}HTTP/1.1 502 }, client.read)
    assert_nil @stage.take(1, patience: 0)
  end

  def test_an_end_behind_an_interim_response_alone
    stage
    client = request(GET)
    taken = @stage.take(0)
    @stage.interim(taken, HINTS)
    @stage.finish(taken)

    assert_match(%r{\A#{Regexp.escape(HINTS)}HTTP/1.1 502 }, client.read)
  end

  # --- half gone, and gone ---

  def test_a_client_that_sends_no_more_gets_its_answer
    stage
    client = request(GET)
    taken = @stage.take(0)
    refute_predicate taken, :half_closed?
    client.close_write
    Thread.pass until @stage.half_closed?(taken)
    assert_equal "1", @stage.tell("wanted", taken.id)
    @stage.answer(taken)

    assert_equal "hello", body_of(client)
    assert_equal "", client.read
  end

  def test_a_client_that_sent_no_more_from_the_beginning
    stage(lanes: 0)
    client = request(GET)
    client.close_write
    @stage.open(0)
    taken = @stage.take(0)
    Thread.pass until taken.half_closed? || @stage.half_closed?(taken)
    @stage.answer(taken)

    assert_equal "hello", body_of(client)
  end

  # Also of one whose request waits behind another on the same lane.
  def test_each_client_that_sends_no_more_is_told_of
    stage(lanes: 1)
    client = request(GET)
    taken = @stage.take(0)
    @stage.data(taken, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n")
    client.readpartial(100)
    client.close_write
    Thread.pass until @stage.half_closed?(taken)
    other = request(GET)
    Thread.pass until @stage.tell("offered", 0) == "1"
    other.close_write
    assert_match(/ 400 /, request("?\r\n\r\n").read, "the reactor has seen all that came before")
    assert @stage.half_closed?(taken)

    @stage.data(taken, "hello")
    @stage.finish(taken)
    second = @stage.take(0)
    refute_predicate second, :half_closed?
    assert @stage.half_closed?(second)
    @stage.answer(second)
    assert_equal(%w[hello hello], [client.read, body_of(other)])
  end

  def test_a_client_that_goes_is_withdrawn_from_the_queue_or_from_its_worker
    stage
    client = request(GET)
    taken = @stage.take(0)
    queued = request(GET)
    Thread.pass until @stage.tell("waiting") == "1"
    reset(queued)
    Thread.pass until @stage.tell("waiting") == "0"
    reset(client)
    Thread.pass until @stage.tell("wanted", taken.id) == "0"

    serves(1)
  end

  private

  # A client that has not taken all of what its worker answered before it asked for the socket.
  def asked(ahead = "", **settings)
    @listener.setsockopt(:SOCKET, :SNDBUF, 8192) # the connections' too
    stage(**settings)
    client = Socket.new(:INET, :STREAM).tap { |socket| @clients << socket }
    client.setsockopt(:SOCKET, :RCVBUF, 8192)
    client.connect(@listener.local_address)
    client.write(GET + ahead)
    taken = @stage.take(0)
    10.times { |index| @stage.data(taken, index.to_s * 20_000) }
    @stage.ok("ask_socket", taken.id)
    [client, taken, Array.new(10) { |index| index.to_s * 20_000 }.join]
  end
end
