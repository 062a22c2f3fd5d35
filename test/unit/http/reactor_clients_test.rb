# frozen_string_literal: true

require "test_helper"
require_relative "support/reactor_case"

# Slow, large, broken and vanishing clients.
class HTTPReactorClientsTest < Minitest::Test
  include HTTPSupport::ReactorCase

  # --- slow clients ---

  def test_a_head_in_pieces
    stage
    text = "POST /path HTTP/1.1\r\nhost: example.org\r\nx-long: #{"y" * 6000}\r\ncontent-length: 4\r\n\r\nbody"
    client = connect
    others = request(GET) # in between: uses the reactor's own fields
    text.each_char.each_slice(97) { |slice| client.write(slice.join) }
    first = @stage.take(0)
    @stage.answer(first)
    second = @stage.take(0)
    @stage.answer(second, "2")
    posted = [first, second].find { |taken| taken.path == "/path" }

    assert_equal text, posted.data
    assert_equal [["2"], ["hello"]].sort, [[body_of(client)], [body_of(others)]].sort
  end

  def test_slow_heads_are_refused
    stage(header_timeout: 100)
    client = request("GET / HTT")

    assert_match(%r{\AHTTP/1.1 408 .*connection: close\r\n\r\n408 Request Timeout\n\z}m, client.read)
    assert_equal "", connect.read # not a word: no answer
  end

  def test_slow_bodies_are_refused
    stage(body_timeout: 100)
    client = request("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n12")

    assert_match(%r{\AHTTP/1.1 408 }, client.read)
  end

  def test_bodies_that_trickle_are_refused
    stage(body_timeout: 400)
    client = request("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\n")
    answer = trickle(client, "x")

    assert_match(%r{\AHTTP/1.1 408 }, answer)
  end

  def test_idle_connections_are_closed
    stage(idle_timeout: 100)
    client = request(GET)
    @stage.answer(@stage.take(0))

    assert client.read.end_with?("hello")
  end

  def test_slow_readers_are_reset
    stage(write_timeout: 200)
    client = request(GET)
    taken = @stage.take(0)
    @stage.data(taken, "HTTP/1.1 200 OK\r\n\r\n")
    block = "x" * 30_000
    300.times { break unless @stage.tell("wanted", taken.id) == "1" && @stage.try(taken, block) == "ok" }
    wait_until { @stage.tell("wanted", taken.id) == "0" }

    assert_raises(Errno::ECONNRESET) { client.read }
  end

  # Slower than a socket asks for more: that takes some 64 KiB.
  def test_a_reader_that_takes_a_little_all_the_time_is_not_reset
    stage(write_timeout: 1000)
    client = Socket.new(:INET, :STREAM).tap { |one| one.setsockopt(:SOCKET, :RCVBUF, 4096) }
    client.connect(@listener.local_address)
    client.write(GET)
    taken = @stage.take(0)
    @stage.data(taken, "HTTP/1.1 200 OK\r\n\r\n")
    20.times { @stage.data(taken, "x" * 30_000) }
    25.times { client.readpartial(3000) && pause(0.1) }

    assert_equal 0, @stage.stats.fetch("slow_readers")
    counts("slow_readers" => 1)
  ensure
    client&.close
  end

  # Nor does it ever pause for write_timeout, but it falls behind 1 KiB/s by as much.
  def test_a_reader_that_takes_too_little_all_the_time_is_reset
    stage(lanes: 1, write_timeout: 1500)
    client = Socket.new(:INET, :STREAM).tap { |one| one.setsockopt(:SOCKET, :RCVBUF, 1) }
    client.connect(@listener.local_address)
    client.write(GET)
    taken = @stage.take(0)
    @stage.data(taken, "HTTP/1.1 200 OK\r\n\r\n")
    assert_equal "ok", @stage.tell("much", taken.id, 300_000)

    assert_raises(Errno::ECONNRESET) { 60.times { client.readpartial(576) && pause(0.9) } }
    counts("slow_readers" => 1)
  ensure
    client&.close
  end

  def test_a_slow_reader_holds_up_its_worker_but_nobody_else_where_there_is_no_disk
    stage(spool_total: 0)
    client = request(GET)
    taken = @stage.take(0)
    sent = +"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n"
    @stage.data(taken, sent)
    while @stage.try(taken, block = format("%030000d", sent.size)) == "ok"
      sent << block
    end
    other = request(GET)
    @stage.answer(@stage.take(1))
    assert_equal "hello", body_of(other)

    reader = Thread.new { client.read }
    @stage.data(taken, "the end")
    @stage.finish(taken, keep: false)
    assert_equal "#{sent}the end", reader.value
  end

  # --- bodies ---

  def test_chunked_bodies
    stage
    client = request("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
    "5\r\nhello\r\n10\r\n#{"x" * 16}\r\n0\r\n\r\n".each_char { |char| client.write(char) }
    taken = @stage.take(0)

    assert_equal ["hello#{"x" * 16}", true], [taken.body, taken.chunked?]
    @stage.answer(taken)
    assert_equal "hello", body_of(client)
  end

  def test_large_bodies_come_in_a_file
    stage
    { 20_000 => false, 300_000 => false, 16_384 => false, 200_000 => true }.each do |size, chunked|
      body = Random.bytes(size)
      client = chunked ? request(chunked_post(body)) : request(sized_post(body))
      taken = @stage.take(0)
      assert_equal [true, size, 0], [taken.body_in_file?, taken.file_bytes, taken.body_bytes]
      kind, bytes = @stage.want("file", taken)
      assert_equal "file 0", kind # and it cannot be written to
      assert_equal body, bytes
      @stage.answer(taken)
      assert_equal "hello", body_of(client)
    end
  end

  def test_the_greatest_request_in_memory
    stage
    head = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 16000\r\n"
    head = "#{head}x: #{"y" * (384 - head.bytesize - 7)}\r\n\r\n"
    client = request(head + ("z" * 16_000))
    taken = @stage.take(0)

    assert_equal [384, 16_000, false], [taken.head_bytes, taken.body_bytes, taken.body_in_file?]
    @stage.answer(taken)
    assert_equal "hello", body_of(client)

    client.write(head.sub("16000", "16001") + ("z" * 16_001))
    taken = @stage.take(0)
    assert_equal [384, 0, true], [taken.head_bytes, taken.body_bytes, taken.body_in_file?]
    @stage.answer(taken)
    assert_equal "hello", body_of(client)
  end

  def test_a_large_head_comes_in_a_file_too
    stage
    head = "GET / HTTP/1.1\r\nhost: a\r\n#{"x: #{"y" * 5000}\r\n" * 5}\r\n"
    ["", "body"].each do |body|
      text = body.empty? ? head : head.sub("host: a", "host: a\r\ncontent-length: 4")
      client = request(text + body)
      taken = @stage.take(0)
      assert_equal [true, text.bytesize, text.bytesize + body.bytesize],
                   [taken.all_in_file?, taken.head_bytes, taken.file_bytes]
      assert_equal text + body, @stage.want("file", taken).last
      @stage.answer(taken)
      assert_equal "hello", body_of(client)
    end
  end

  def test_pipelining_behind_a_large_chunked_body
    stage
    client = request(chunked_post("x" * 100_000) + GET + POST)
    bodies = Array.new(3) do
      taken = @stage.take(0)
      body = taken.body_in_file? ? @stage.want("file", taken).last : taken.body
      @stage.answer(taken)
      body_of(client)
      body
    end

    assert_equal ["x" * 100_000, "", "abc"], bodies
  end

  def test_continue_if_the_client_waits_for_it
    stage
    client = request("POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n")
    assert_equal "HTTP/1.1 100 Continue\r\n\r\n", client.readpartial(100)
    client.write("abc")
    taken = @stage.take(0)

    assert_equal "abc", taken.body
    @stage.answer(taken)
    assert_equal "hello", body_of(client)
  end

  def test_no_continue_if_the_body_is_there_or_refused
    stage(max_body_bytes: 10)
    client = request(POST.sub("content", "expect: 100-continue\r\ncontent"))
    @stage.answer(@stage.take(0))
    assert_match(%r{\AHTTP/1.1 200}, client.readpartial(1000))

    client = request("POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 11\r\n\r\n")
    assert_match(%r{\AHTTP/1.1 413}, client.readpartial(1000))
  end

  # --- refusals ---

  def test_refusals
    stage(max_body_bytes: 10, max_target_bytes: 50, max_header_bytes: 2000, max_headers: 5)
    { "GET\r\n\r\n" => 400, "GET / HTTP/1.1\r\n\r\n" => 400, "GET /#{"x" * 60} HTTP/1.1\r\n" => 414,
      "GET / HTTP/1.1\r\nhost: a\r\nx: #{"y" * 3000}" => 431, "GET / HTTP/1.1\r\nhost: a\r\n#{"x: y\r\n" * 5}" => 431,
      "GET / HTTP/2.0\r\n\r\n" => 505, "CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n" => 501,
      "GET https://a/ HTTP/1.1\r\nhost: a\r\n\r\n" => 421,
      "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 11\r\n\r\n" => 413,
      "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nb\r\n12345678901" => 413,
      "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nx" => 400,
      "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip, chunked\r\n\r\n" => 501 }.each do |text, status|
      answer = request(text).read
      assert_match(%r{\AHTTP/1.1 #{status} .*\r\nconnection: close\r\n\r\n#{status} .*\n\z}m, answer, text[0, 50])
      assert_match(/\r\ndate: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r\n/, answer)
    end
  end

  def test_a_refusal_after_a_head_request_has_its_body
    stage
    client = request("HEAD / HTTP/1.1\r\nhost: a\r\n\r\n")
    taken = @stage.take(0)
    @stage.data(taken, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n")
    @stage.finish(taken)
    client.readpartial(1000)
    client.write("GET bad HTTP/1.1\r\n\r\n")

    assert_match(/\r\ncontent-length: 16\r\n.*\r\n\r\n400 Bad Request\n\z/m, client.read)
  end

  def test_a_request_that_is_cut_off
    stage
    ["GET / HT", "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n12"].each do |text|
      client = request(text)
      client.close_write
      assert_match(%r{\AHTTP/1.1 400}, client.read)
    end
  end

  def test_a_refused_client_that_still_sends_can_read_the_answer
    stage(max_body_bytes: 10)
    client = request("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9000000\r\n\r\n")
    begin
      client.write("x" * 2_000_000)
    rescue Errno::EPIPE, Errno::ECONNRESET
      nil # it may send more than we drain
    end

    assert_match(%r{\AHTTP/1.1 413}, client.readpartial(20))
  end

  # --- clients that go ---

  def test_a_client_that_goes_while_it_waits
    stage
    client = request(GET)
    reset(client)
    serves(0, patience: true)
  end

  def test_a_client_that_goes_while_it_is_served
    stage
    client = request(sized_post("x" * 30_000))
    taken = @stage.take(0)
    reset(client)
    wait_until { @stage.tell("wanted", taken.id) == "0" }

    assert_equal "gone", @stage.tell("want_file", taken.id)
    @stage.answer(taken)
    serves(0)
  end
end
