# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/c_program"
require_relative "support/reactor_case"

# Workers that die, or go wild, and the descriptors that they exchange with the reactor.
class HTTPReactorWorkersTest < Minitest::Test
  include HTTPSupport::ReactorCase

  # --- workers that die ---

  def test_a_safe_request_is_retried_once
    stage
    client = request(GET)
    first = @stage.take(0)
    refute first.retry?
    @stage.ok("dead", 0, DIED)
    second = @stage.take(1)
    assert_equal [true, GET], [second.retry?, second.head]
    @stage.ok("dead", 1, DIED)

    assert_match(%r{\AHTTP/1.1 502 .*502 Bad Gateway\n\z}m, client.read)
  end

  def test_a_retry_that_succeeds
    stage
    client = request(GET)
    first = @stage.take(0)
    @stage.ok("half", first.id)
    @stage.ok("dead", 0, DIED)
    @stage.answer(@stage.take(1), "second")

    assert_equal "second", body_of(client)
  end

  def test_a_retry_gets_the_file_again
    stage
    client = request(sized_post("x" * 50_000).sub("POST", "GET"))
    first = @stage.take(0)
    @stage.want("file", first)
    @stage.ok("dead", 0, DIED)
    second = @stage.take(1)

    assert_equal "x" * 50_000, @stage.want("file", second).last
    @stage.answer(second)
    assert_equal "hello", body_of(client)
  end

  def test_what_is_never_retried
    stage
    { [POST, DIED] => 502, [GET, TIMED_OUT] => 504, [GET, SUSPECT] => 502, [POST, TIMED_OUT] => 504 }
      .each_with_index do |((text, cause), status), lane|
        @stage.open(lane) if lane > 1
        client = request(text)
        @stage.take(lane)
        @stage.ok("dead", lane, cause)
        assert_match(%r{\AHTTP/1.1 #{status} }, client.read)
      end
  end

  def test_no_retry_if_it_is_not_wanted
    stage(retry: 0)
    client = request(GET)
    @stage.take(0)
    @stage.ok("dead", 0, DIED)

    assert_match(%r{\AHTTP/1.1 502 }, client.read)
  end

  def test_a_refusal_of_head_has_no_body
    stage
    client = request("HEAD / HTTP/1.1\r\nhost: a\r\n\r\n")
    @stage.take(0)
    @stage.ok("dead", 0, TIMED_OUT)

    assert client.read.end_with?("connection: close\r\n\r\n")
  end

  def test_a_worker_that_dies_after_some_bytes
    stage
    client = request(GET)
    taken = @stage.take(0)
    @stage.data(taken, "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nsome")
    assert_match(/some\z/, client.readpartial(1000))
    @stage.ok("half", taken.id)
    @stage.ok("dead", 0, DIED)

    assert_raises(Errno::ECONNRESET) { client.read }
  end

  def test_a_worker_that_dies_after_its_answer
    stage
    client = request(POST)
    @stage.answer(@stage.take(0))
    @stage.ok("dead", 0, SUSPECT)

    assert_equal "hello", body_of(client)
  end

  def test_a_worker_that_dies_beside_a_slow_reader
    stage(spool_total: 0)
    client = request(GET)
    taken = @stage.take(0)
    sent = +"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n"
    @stage.data(taken, sent)
    fill_ring(taken, sent)
    part = client.readpartial(3_000_000)
    @stage.finish(taken, keep: false)
    @stage.ok("dead", 0, DIED)

    assert_equal sent, part + client.read
  end

  def test_an_answer_that_is_given_up
    stage
    client = request(GET)
    @stage.ok("abort", @stage.take(0).id)
    assert_match(%r{\AHTTP/1.1 502 }, client.read)

    client = request(GET)
    taken = @stage.take(0)
    @stage.data(taken, "HTTP/1.1 200 OK\r\n\r\n")
    @stage.ok("abort", taken.id)
    assert_raises(Errno::ECONNRESET) { client.read }
  end

  def test_an_answer_without_a_byte
    stage
    client = request(GET)
    @stage.finish(@stage.take(0))

    assert_match(%r{\AHTTP/1.1 502 }, client.read)
  end

  # --- workers gone wild ---

  def test_a_corrupt_lane
    stage
    client = request(GET)
    @stage.take(0)
    @stage.ok("spoil", 0)

    assert_equal "record 18 0", @stage.tell("report")
    assert_match(%r{\AHTTP/1.1 502 }, client.read)
    @stage.ok("dead", 0, SUSPECT)
    @stage.open(0)
    serves(0)
  end

  def test_frames_for_requests_of_others_are_dropped
    stage
    client = request(GET)
    taken = @stage.take(0)
    [[1, taken.epoch, taken.turn], [0, taken.epoch, taken.turn + 1], [0, taken.epoch + 1, taken.turn]].each do |address|
      @stage.ok("data", *address, "ff" * 10)
      @stage.ok("end", *address, 1)
    end
    @stage.answer(taken)

    assert_equal "hello", body_of(client)
    serves(1)
  end

  def test_a_damaged_offer_ends_its_worker
    stage(lanes: 1)
    first = request(GET)
    @stage.take(0)
    second = request(GET)
    wait_until { @stage.tell("word?", 0) == "1" }
    @stage.ok("word", 0, 2, 777)

    assert_equal "record 18 0", @stage.tell("report")
    assert_match(%r{\AHTTP/1.1 502 }, first.read)
    @stage.open(1)
    taken = @stage.take(1)
    assert_predicate taken, :retry?
    @stage.answer(taken)
    assert_equal "hello", body_of(second)
  end

  # It would do the same to the next worker.
  def test_a_request_whose_worker_may_have_damaged_the_offer_because_of_it
    stage(lanes: 1)
    assert_equal "1", @stage.tell("sleep", 0)
    client = request(GET)
    wait_until { @stage.tell("word?", 0) == "1" }
    @stage.ok("word", 0, 2, 777)

    assert_match(%r{\AHTTP/1.1 502 }, client.read)
    @stage.open(1)
    serves(1)
  end

  # What the reactor has found free may be another moment later.
  def test_a_lane_that_changes_while_the_reactor_looks_at_it
    stage(lanes: 1)
    client = connect
    @stage.ok("flicker", 0)
    served = Thread.new { @stage.tell("serve", 0) }
    400.times { assert_empty body_of(client.tap { client.write(GET) }) }
    client.write(GET.sub("/", "/enough"))

    assert_equal "served 401", served.value
  end

  # --- which worker gets which request ---

  # Else it would take the end of an answer for one of the next.
  def test_no_claim_is_seen_without_those_before_it
    program = Support::CProgram.path("claims", HTTPSupport::ReactorStage::SOURCES)
    output, status = Open3.capture2e(program)

    assert_predicate status, :success?, output
    assert_includes output, "all hold"
  end

  def test_a_request_that_waits_for_a_busy_worker_is_another_ones_as_soon_as_that_is_idle
    stage
    clients = Array.new(2) { request(GET) }
    busy = @stage.take(0)
    wait_until { @stage.tell("waiting") == "1" }
    other = @stage.take(1)
    [other, busy].each { |taken| @stage.answer(taken) }

    assert_equal(%w[hello hello], clients.map { |client| body_of(client) })
  end

  def test_a_request_that_waits_for_a_fast_worker_which_is_slow_now_is_another_ones_soon
    stage
    request((GET * 50) + GET.sub("/", "/enough"))
    assert_equal "served 51", @stage.tell("serve", 0)
    clients = Array.new(2) { request(GET) }
    busy = @stage.take(0)
    other = @stage.take(1)
    [other, busy].each { |taken| @stage.answer(taken) }

    assert_equal(%w[hello hello], clients.map { |client| body_of(client) })
  end

  def test_what_is_taken_back_from_a_worker_is_not_to_be_read_there
    stage
    request(GET)
    busy = @stage.take(0)
    request("GET /secret HTTP/1.1\r\nhost: a\r\n\r\n")
    wait_until { @stage.tell("offered", 0) == "1" }
    taken = @stage.take(1)

    assert_equal "/secret", taken.path
    refute_includes [@stage.tell("data?", 0).delete(" ")].pack("H*"), "secret"
    [busy, taken].each { |each| @stage.answer(each) }
  end

  def test_a_worker_that_wants_no_request_gives_back_what_it_was_offered
    stage
    first = request(GET)
    busy = @stage.take(0)
    second = request(GET)
    wait_until { @stage.tell("offered", 0) == "1" }
    @stage.ok("closed", 0)
    wait_until { @stage.tell("offered", 0) == "0" }
    @stage.answer(busy)
    @stage.answer(@stage.take(1))

    assert_equal(%w[hello hello], [first, second].map { |client| body_of(client) })
  end

  def test_a_worker_that_seems_idle_and_is_not_holds_nobody_up
    stage
    @stage.ok("seems_asleep", 0, 99)
    client = request(GET)
    wait_until { @stage.tell("offered", 0) == "1" }
    @stage.answer(@stage.take(1))

    assert_equal "hello", body_of(client)
  end

  # Its client would wait for ever.
  def test_a_worker_that_has_forgotten_its_request
    stage(lanes: 1)
    client = request(GET)
    @stage.take(0)
    assert_equal "1", @stage.tell("sleep", 0)

    assert_match(%r{\AHTTP/1.1 502 }, client.read)
  end

  # --- descriptors ---

  def test_files_are_sent
    stage
    bytes = Random.bytes(3_000_000)
    Tempfile.create do |file|
      file.binmode
      file.write(bytes)
      file.flush
      client = connect
      2.times do
        client.write(GET)
        taken = @stage.take(0)
        @stage.data(taken, "HTTP/1.1 200 OK\r\ncontent-length: #{bytes.bytesize}\r\n\r\n")
        @stage.send_file(taken, file.path, bytes.bytesize)
        @stage.finish(taken)
        other = request(GET) # the worker is free although the file is not through
        @stage.answer(@stage.take(0))
        assert_equal "hello", body_of(other)
        assert_equal bytes, body_of(client)
      end
    end
  end

  def test_a_file_that_is_too_short
    stage
    Tempfile.create do |file|
      file.write("short")
      file.flush
      client = request(GET)
      taken = @stage.take(0)
      @stage.data(taken, "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n")
      @stage.send_file(taken, file.path, 100)
      @stage.finish(taken)
      assert_raises(Errno::ECONNRESET) { client.read }
    end
  end

  def test_descriptors_of_dropped_frames_and_things_that_are_no_files
    stage
    client = request(GET)
    taken = @stage.take(0)
    @stage.ok("pass", 0, taken.epoch, taken.turn - 1, "/etc/hostname") # nobody's
    @stage.send_file(taken, "/dev/zero", 10)

    assert_match(%r{\AHTTP/1.1 502 }, client.read)
  end

  def test_hands_over_the_connection
    stage
    client = request("#{GET}more")
    taken = @stage.take(0)

    assert_equal %w[socket more], @stage.want("socket", taken)
    assert_equal "hello", client.read
    serves(0)
  end
end
