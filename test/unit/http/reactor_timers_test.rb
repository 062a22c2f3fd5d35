# frozen_string_literal: true

require "test_helper"
require "socket"
require "tmpdir"
require_relative "support/reactor_case"

# Deadlines where a client takes nothing of what the reactor has for it, and where nobody could do anything.
class HTTPReactorTimersTest < Minitest::Test
  include HTTPSupport::ReactorCase

  HEAD = "POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n"
  ANSWER = "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n#{"x" * 1000}".freeze

  def setup
    @folder = Dir.mktmpdir
    @path = File.join(@folder, "socket")
    @listener = UNIXServer.new(@path)
    @clients = []
  end

  def teardown
    super
    FileUtils.rm_rf(@folder)
  end

  # The 100 Continue finds the client's buffer full, and waits for longer than the body that it was meant to invite.
  def test_a_late_continue_takes_nothing_of_the_time_in_the_queue
    stage(lanes: 1, queue_timeout: 2000)
    client = full_client
    client.write(HEAD)
    serves(0) # the head has been read
    client.write("abc")
    counts("in_flight" => 1)
    client.read(@sent)

    assert_equal "HTTP/1.1 100 Continue\r\n\r\n", client.readpartial(25)
    assert_match(%r{\AHTTP/1.1 503 }, Timeout.timeout(60) { client.read })
    counts("shed_queue_time" => 1)
  end

  # For 2 s; what comes then is not read any more.
  def test_who_is_refused_and_sends_on_is_closed_all_the_same
    stage
    client = request("bad\r\n\r\n")

    assert_raises(Errno::EPIPE, Errno::ECONNRESET) { loop { client.write("x") && pause(0.05) } }
    counts("connections" => 0)
  end

  def test_a_late_continue_holds_up_a_worker_for_write_timeout_only
    stage(lanes: 2, queue_timeout: 300, write_timeout: 600)
    client = full_client
    client.write(HEAD)
    serves(0)
    client.write("abc")
    taken = @stage.take(0)
    @stage.ok("ask_socket", taken.id)

    assert_equal "gone", @stage.receive(taken)
    counts("slow_readers" => 1, "connections" => 1)
  end

  # As in a container that is frozen: the worker could not take it either.
  def test_time_in_which_the_reactor_stood_still_is_not_waited_in_the_queue
    stage(lanes: 1, queue_timeout: 2000)
    client = connect.tap { |one| one.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n") }
    counts("in_flight" => 1)
    @stage.ok("signal", Signal.list["STOP"])
    pause 2.2
    turns = @stage.stats["turns"]
    @stage.ok("signal", Signal.list["CONT"])
    wait_until { @stage.stats["turns"] > turns + 1 }
    @stage.answer(@stage.take(0))

    assert_equal "hello", body_of(client)
    late = connect.tap { |one| one.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n") }
    assert_match(%r{\AHTTP/1.1 503 }, Timeout.timeout(60) { late.read })
  end

  private

  def connect = UNIXSocket.new(@path).tap { |client| @clients << client }

  # One that has not read its answers, of which the last has just had room.
  def full_client
    client = connect
    room = answers_that_have_room
    room.times do
      client.write(GET)
      taken = @stage.take(0)
      @stage.data(taken, ANSWER)
      @stage.finish(taken)
    end
    @sent = room * ANSWER.bytesize
    counts("responses" => room, "idle" => 1)
    client
  end

  def answers_that_have_room
    reader, writer = UNIXSocket.pair
    count = 0
    count += 1 while writer.write_nonblock(ANSWER, exception: false) == ANSWER.bytesize
    count
  ensure
    [reader, writer].each(&:close)
  end
end
