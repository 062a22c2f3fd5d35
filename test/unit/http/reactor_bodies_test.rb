# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require_relative "support/reactor_case"

# What bodies cost the reactor: system calls, turns of its loop, descriptors, room.
class HTTPReactorBodiesTest < Minitest::Test
  include HTTPSupport::ReactorCase

  CHUNKED = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
  TINY = "1\r\nx\r\n"

  # --- the spool ---

  def test_a_spool_that_has_vanished_is_named_as_the_reason
    Dir.mktmpdir("pando") do |folder|
      stage(spool_directory: "#{folder}/spool", body_memory: 10_000)
      client = request("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 99999\r\n\r\n#{"x" * 99_999}")

      assert_match(/ 503 /, client.gets)
      counts("spool_failed" => 1, "spool_error" => Errno::ENOENT::Errno, "shed_resources" => 1)
      Dir.mkdir("#{folder}/spool")
      request("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 99999\r\n\r\n#{"x" * 99_999}")

      assert_equal "x" * 99_999, @stage.want("file", @stage.take(0)).last
    end
  end

  # --- chunks ---

  def test_tiny_chunks_cost_no_system_call_each
    stage
    before = writes
    client = request("#{CHUNKED}#{TINY * 60_000}0\r\n\r\n")
    taken = @stage.take(0)

    assert_equal [true, 60_000], [taken.body_in_file?, taken.file_bytes]
    assert_operator writes - before, :<, 60
    assert_equal "x" * 60_000, @stage.want("file", taken).last
    @stage.answer(taken)
    assert_equal "hello", body_of(client)
  end

  def test_tiny_chunks_in_tiny_pieces
    stage
    client = connect
    client.setsockopt(:TCP, :NODELAY, 1)
    "#{CHUNKED}#{TINY * 4000}7d0\r\n#{"y" * 2000}\r\n#{TINY * 17_000}0\r\n\r\n#{GET}"
      .scan(/.{1,701}/m) { |piece| client.write(piece) }
    taken = @stage.take(0)

    assert_equal ("x" * 4000) + ("y" * 2000) + ("x" * 17_000), @stage.want("file", taken).last
    2.times do
      @stage.answer(taken)
      assert_equal "hello", body_of(client)
      taken = @stage.take(0) if taken.body_in_file?
    end
  end

  # Around the size up to which a request travels in memory.
  def test_chunked_bodies_of_all_sizes
    stage
    (16_384 - CHUNKED.bytesize - 70).step(16_400, 3) do |size|
      body = Random.bytes(size)
      client = request("#{"#{CHUNKED}#{format("%x", size)}\r\n".b}#{body}\r\n0\r\n\r\n")
      taken = @stage.take(0)
      assert_equal body, taken.body_in_file? ? @stage.want("file", taken).last : taken.body
      @stage.answer(taken)
      assert_equal "hello", body_of(client)
    end
  end

  def test_a_large_head_with_a_chunked_body_comes_in_a_file
    stage
    head = CHUNKED.sub("host: a", "host: a\r\n#{"x: #{"y" * 5000}\r\n" * 4}z:")
    client = request("#{head}3\r\nabc\r\n#{TINY * 9000}0\r\n\r\n")
    taken = @stage.take(0)

    assert_equal [true, head.bytesize, 9003], [taken.all_in_file?, taken.head_bytes, taken.file_bytes - head.bytesize]
    assert_equal "#{head}abc#{"x" * 9000}", @stage.want("file", taken).last
    @stage.answer(taken)
    assert_equal "hello", body_of(client)
  end

  # All of it waits in the kernel, and a turn takes a part.
  def test_one_connection_has_a_share_of_a_turn
    @listener.setsockopt(:SOCKET, :RCVBUF, 1 << 20)
    stage
    client = request(CHUNKED)
    client.setsockopt(:SOCKET, :SNDBUF, 1 << 20)
    serves(0)
    turns = @stage.stats.fetch("turns")
    @stage.ok("signal", Signal.list["STOP"])
    client.write("#{TINY * 50_000}0\r\n\r\n")
    @stage.ok("signal", Signal.list["CONT"])
    @stage.take(0)

    assert_operator @stage.stats.fetch("turns") - turns, :>=, 4
  end

  # --- a body that is announced ---

  def test_a_body_takes_a_file_when_it_comes
    stage
    serves(0)
    none = files
    client = request("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 20000\r\n\r\n")
    serves(0) # the head has been read
    assert_equal none, files
    client.write("x")
    wait_until { files == none + 1 }
    client.write("x" * 19_999)
    taken = @stage.take(0)

    assert_equal "x" * 20_000, @stage.want("file", taken).last
    @stage.answer(taken)
    assert_equal "hello", body_of(client)
  end

  private

  # Calls of write(2) and the like, see proc(5).
  def writes = Integer(File.read("/proc/#{@stage.tell("pid")}/io")[/^syscw: (\d+)/, 1])

  def files
    Dir["/proc/#{@stage.tell("pid")}/fd/*"].count do |path|
      File.readlink(path).match?(/pando-request|deleted/)
    rescue Errno::ENOENT
      false
    end
  end
end
