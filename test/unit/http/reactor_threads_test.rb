# frozen_string_literal: true

require "test_helper"
require_relative "support/reactor_case"

# Workers that have several lanes each, one for each of their threads: which of them gets a request.
class HTTPReactorThreadsTest < Minitest::Test
  include HTTPSupport::ReactorCase

  BESIDE = 3
  NEXT = GET.sub("/", "/next")

  def test_a_worker_without_requests_comes_first_and_then_the_one_with_the_fewest
    workers(2, threads: 2)
    lanes = Array.new(4) { offered_next }

    assert_equal [0, 1], lanes.first(2).map { |lane| lane / 2 }.sort
    assert_equal [0, 1], lanes.last(2).map { |lane| lane / 2 }.sort
    assert_equal [0, 1, 2, 3], lanes.sort
  end

  def test_a_worker_whose_interpreter_lock_is_in_use_gets_no_second_request
    workers(1, threads: 2)
    @stage.ok("lock", 0, 1)
    lane = offered_next
    taken = @stage.take(lane)
    request("GET /second HTTP/1.1\r\nhost: a\r\n\r\n")
    wait_until { @stage.stats.fetch("queued") == 1 }
    assert_equal "0", @stage.tell("offered", 1 - lane)
    @stage.ok("lock", 0, 0)

    assert_equal "/second", @stage.take(1 - lane).path
    @stage.answer(taken)
  end

  # The second thread would only wait for the interpreter lock. On a busy machine a request may take long by chance.
  def test_a_fast_worker_takes_the_next_request_on_the_thread_that_is_at_work
    workers(1, threads: 2)

    assert(Array.new(8) { |round| round }.any? { lane_of_the_second == 1 })
  end

  # The application may do something long when its response is sent.
  def test_a_fast_worker_that_is_not_back_after_its_response_leaves_the_next_request_to_another_thread
    workers(1, threads: 2)
    answer_on_the_fast_one
    request(NEXT)

    assert_equal "/next", @stage.take(0)&.path
  end

  def test_with_auto_likewise
    workers(1, threads: 2)
    @stage.ok("lock", 0, 0)
    answer_on_the_fast_one
    request(NEXT)

    assert_equal "/next", @stage.take(0)&.path
  end

  # The next request waits behind the first, because others had the interpreter lock.
  def test_with_auto_a_request_that_waits_behind_a_response_goes_to_another_thread
    workers(1, threads: 2)
    taken, = two_on_the_fast_one
    @stage.answer(taken)
    @stage.ok("lock", 0, 0)

    assert_equal "/next", @stage.take(0)&.path
  end

  def test_with_auto_a_request_that_waits_behind_one_whose_client_has_left_goes_to_another_thread
    workers(1, threads: 2)
    taken, client = two_on_the_fast_one
    reset(client)
    wait_until { @stage.tell("wanted", taken.id) == "0" }
    @stage.ok("lock", 0, 0)

    assert_equal "/next", @stage.take(0)&.path
  end

  # And has left before the reactor knew that the request was taken.
  def test_with_auto_a_request_that_waits_behind_one_whose_client_has_left_at_once_goes_to_another_thread
    workers(1, threads: 2)
    @stage.ok("lock", 0, 0)
    fast
    assert_equal 1, offered_next
    @stage.ok("lock", 0, 1)
    request(NEXT)
    counts("queued" => 2)
    @stage.ok("signal", Signal.list["STOP"])
    taken = @stage.take(1)
    reset(@clients.first(2).last)
    @stage.ok("signal", Signal.list["CONT"])
    wait_until { @stage.tell("wanted", taken.id) == "0" }
    @stage.ok("lock", 0, 0)

    assert_equal "/next", @stage.take(0)&.path
  end

  def test_the_lock_of_another_worker_does_not_matter
    workers(2, threads: 2)
    [0, 2].each { |first| @stage.ok("lock", first, 1) }

    assert_equal [0, 1], Array.new(2) { offered_next / 2 }.sort
  end

  # With :auto a thread that was just woken will use the lock, and does not yet.
  def test_with_auto_one_thread_is_woken_at_a_time
    workers(1, threads: 2)
    @stage.ok("lock", 0, 0)
    lane = offered_next
    request(GET)
    wait_until { @stage.stats.fetch("queued") == 2 }
    assert_equal "0", @stage.tell("offered", 1 - lane)
    @stage.take(lane)
    @stage.ok("lock", 0, 0)

    assert_equal "/", @stage.take(1 - lane).path
  end

  def test_requests_beside_the_one_that_ended_the_worker_are_tried_again
    workers(1, threads: 2)
    killer, beside = Array.new(2) { @stage.take(offered_next) }
    @stage.open(4)
    @stage.ok("dead", killer.lane, SUSPECT)
    @stage.ok("dead", beside.lane, BESIDE)

    @stage.answer(@stage.take(4), "again")
    heads = @clients.map { |client| Timeout.timeout(20) { client.readline } }
    assert_equal ["HTTP/1.1 200 OK\r\n", "HTTP/1.1 502 Bad Gateway\r\n"], heads.sort
  end

  def test_three_times_at_most
    workers(1, threads: 1)
    client = request(GET)
    4.times do |number|
      lane = @stage.take(number).lane
      @stage.open(number + 1) if number < 3
      @stage.ok("dead", lane, BESIDE)
    end

    assert_equal "HTTP/1.1 502 Bad Gateway\r\n", Timeout.timeout(20) { client.readline }
  end

  private

  # Lane 1 serves some requests, and has one more when another comes.
  # @return [Integer] the lane of that one
  def lane_of_the_second
    fast
    assert_equal 1, offered_next
    first = @stage.take(1)
    second = offered_next
    @stage.answer(first)
    @stage.answer(take_from_either) # after a millisecond the other thread may have it
    [0, 1].each { |lane| @stage.tell("sleep", lane) }
    second
  end

  # Lane 1 has served some requests, and sleeps. On a busy machine it may have been slow nevertheless.
  def fast
    served = Thread.new { @stage.tell("serve", 1) }
    client = connect
    20.times { assert_empty body_of(client.tap { client.write(GET) }) }
    client.write(GET.sub("/", "/enough"))
    assert_equal "served 21", served.value
    assert_equal "1", @stage.tell("sleep", 1)
  end

  def answer_on_the_fast_one
    fast
    assert_equal 1, offered_next
    @stage.answer(@stage.take(1))
    assert_equal "hello", body_of(@clients.last)
  end

  # The second is not taken.
  # @return [Array(ReactorStage::Request, TCPSocket)] the first, and its client
  def two_on_the_fast_one
    @stage.ok("lock", 0, 0)
    fast
    assert_equal 1, offered_next
    client = @clients.last
    taken = @stage.take(1)
    @stage.ok("lock", 0, 1)
    request(NEXT)
    wait_until { @stage.tell("offered", 1) == "1" }
    [taken, client]
  end

  def workers(count, threads:)
    stage(lanes: 0)
    @lanes = (0...(count * threads)).to_a
    @lanes.each do |lane|
      @stage.ok("join", lane, lane - (lane % threads))
      assert_equal "1", @stage.tell("sleep", lane)
    end
  end

  # Sends a request.
  # @return [Integer] the lane that it is on
  def offered_next
    before = offered
    request(GET)
    wait_until { (offered - before).first } # a moment later it may be on another one
  end

  def offered = @lanes.select { |lane| @stage.tell("offered", lane) == "1" }
end
