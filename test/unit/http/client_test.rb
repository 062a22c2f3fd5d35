# frozen_string_literal: true

require "test_helper"
require "pando/http/client"
require_relative "support/each_mode"

# What X-Request-Start is believed to say.
class HTTPQueueTimeTest < Minitest::Test
  # @param ago [Numeric] seconds
  # @return [Float, nil]
  def of(ago, unit: 1, before: "t=")
    start = Process.clock_gettime(Process::CLOCK_REALTIME) - ago
    text = unit == 1 ? format("%.6f", start) : (start * unit).to_i
    Pando::HTTP::QueueTime.of({ Pando::HTTP::QueueTime::FIELD => "#{before}#{text}" }, nil)
  end

  def test_the_unit_shows_in_the_number_of_digits
    [1, 1000, 1_000_000, 1_000_000_000].product(["", "t="]) do |unit, before|
      assert_includes 7.0..60.0, of(7.002, unit: unit, before: before)
    end
  end

  def test_an_hour_is_believed_and_no_more
    assert_includes 3500.0..3600.0, of(3500)
    assert_nil of(3600.001)
  end

  def test_a_clock_may_be_ahead_by_a_second
    assert_includes 0.0..60.0, of(-0.999)
    assert_nil of(-60)
  end

  def test_what_is_not_believed_leaves_the_reactors_word
    assert_in_delta 0.5, Pando::HTTP::QueueTime.of({ Pando::HTTP::QueueTime::FIELD => "t=1" }, 0.5)
    assert_in_delta 0.5, Pando::HTTP::QueueTime.of({}, 0.5)
  end
end

# env["pando.client"]: is there still somebody?
class HTTPClientHandleTest < Minitest::Test
  extend HTTPSupport::EachMode

  # The handle of each request goes to the test; the request ends when it says so.
  def handles
    @go = Queue.new
    handles = Queue.new
    serve { |env| (handles << env["pando.client"]) && @go.pop && [200, {}, ["answer"]] }
    handles
  end

  in_each_mode "somebody_waits_until_the_request_is_over" do
    waiting = handles
    client = request("Connection: close\r\n")
    handle = waiting.pop

    assert_predicate handle, :connected?
    refute_predicate handle, :half_closed?
    assert_match(/connected=true/, handle.inspect)
    @go << true
    assert_match(/answer\z/, all_of(client))
    wait_for_jobs(1)
    refute_predicate handle, :connected?
  end

  in_each_mode "a_client_that_sends_no_more_gets_its_answer" do
    waiting = handles
    client = request
    handle = waiting.pop
    client.close_write
    Thread.pass until handle.half_closed?

    assert_predicate handle, :connected?
    @go << true
    assert_match(/answer\z/, all_of(client))
  end

  in_each_mode "a_client_that_went" do
    waiting = handles
    client = request
    handle = waiting.pop
    reset(client)
    Thread.pass while handle.connected?

    assert_predicate handle, :half_closed?
    events = events_of do
      @go << true
      wait_for_jobs(1)
    end
    assert_empty events
  end

  in_each_mode "a_client_on_a_unix_socket_that_closed" do
    Dir.mktmpdir do |dir|
      seen = Queue.new
      app = lambda do |env|
        seen << true
        Thread.pass while env["pando.client"].connected?
        [200, {}, []]
      end
      serve(app, unix: "#{dir}/socket")
      client = request
      seen.pop
      @clients.delete(client).close

      wait_for_jobs(1)
    end
  end

  in_each_mode "who_took_the_connection_asks_the_socket" do
    waiting = handles
    request
    handle = waiting.pop
    handle.call.close

    refute_predicate handle, :connected?
    @go << true
  end

  in_each_mode "a_stream_to_nobody_raises" do
    errors = Queue.new
    serve do
      body = lambda do |stream|
        loop { stream.write("x" * 50_000) }
      rescue IOError => e
        errors << e
        raise
      end
      [200, {}, body]
    end
    events = events_of do
      client = request
      head_of(client)
      reset(client)

      assert_instance_of Pando::HTTP::ClientGone, errors.pop
      wait_for_jobs(1)
    end
    assert_empty events
  end
end

# A body that is an Array of many Strings.
class HTTPManyPartsTest < Minitest::Test
  extend HTTPSupport::EachMode

  # Tells the CPU time of its thread until it is sent.
  class Body
    def initialize(parts, times)
      @parts = parts
      @times = times
    end

    def each(&block) = @parts.each(&block)

    def to_ary
      @began = time
      @parts
    end

    def close = @times << (time - @began)

    private

    def time = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
  end

  in_each_mode "all_of_it_arrives" do
    serve { |env| [200, {}, parts(env["PATH_INFO"][/\d+/].to_i)] }

    [63, 64, 65, 127, 128, 129, 1000].each do |count|
      assert_equal "HTTP/1.1 200 OK\r\n\r\n#{parts(count).join}", ask("/#{count}")
    end
  end

  in_each_mode "its_time_grows_with_the_number_of_its_strings_and_not_with_the_square" do
    times = Queue.new
    serve { |env| [200, {}, Body.new(["abcdefghij"] * env["PATH_INFO"][/\d+/].to_i, times)] }
    few, many = [50_000, 200_000].map { |count| Array.new(3) { ask("/#{count}") && times.pop }.min }

    assert_operator many, :<=, 8 * few
  end

  private

  # Empty ones, small ones, and one that is larger than a frame.
  def parts(count)
    Array.new(count) { |number| number == 65 ? "x" * 100_000 : number.to_s * (number % 3) } << "" << ""
  end
end

# Old clients send a line end behind a body, which the Content-Length does not count (RFC 9112 section 2.2).
class HTTPLineBehindBodyTest < Minitest::Test
  extend HTTPSupport::EachMode

  SIZE = 3_000_000

  in_each_mode "it_does_not_cut_the_response" do
    called = Queue.new
    gate = Queue.new
    serve { (called << true) && gate.pop && [200, {}, ["x" * SIZE]] }
    client = request("Connection: close\r\nContent-Length: 5\r\n", verb: "POST", behind: "hello")
    client.setsockopt(:SOCKET, :RCVBUF, 16_384) # so that the response waits in the worker's socket
    called.pop
    client.write("\r\n")
    gate << true

    assert_equal SIZE, all_of(client)[/\r\n\r\n(.*)/, 1].bytesize
  end
end

# In a child that the application has forked, a request's client is the parent's.
class HTTPDisownedClientTest < Minitest::Test
  def test_it_neither_receives_nor_sends
    ours, theirs = UNIXSocket.pair
    client = Pando::HTTP::SocketClient.new(ours.fileno, 1.0)
    client.disown

    assert_raises(Pando::HTTP::ClientGone) { client.receive(+"", 0, 10, Pando::HTTP::Pace.new(1.0)) }
    File.open(__FILE__) { |file| assert_raises(Pando::HTTP::ClientGone) { client.transmit_file(file, 10) } }
  ensure
    [ours, theirs].each(&:close)
  end
end
