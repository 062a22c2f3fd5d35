# frozen_string_literal: true

require_relative "bench_helper"
require "socket"
require "support/connections"

# The clients of bench/live: what a server may send them, and what they must not let pass.
class ConnectionsTest < Minitest::Test
  SWITCH = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" \
           "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
  STREAM = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
  TEXT = 1
  CLOSE = 8
  PING = 9
  PONG = 10

  def teardown
    @listener&.close
    @sockets&.each(&:close)
  end

  def test_texts_and_pings_come_back_and_closing_is_answered
    serve(SWITCH) { |socket| echo(socket) }
    connect("echo") do |connections|
      assert_equal [30, 30, 30, 5], [connections.open(30), connections.ask(30), connections.ping(30),
                                     connections.close(5)]
      assert_equal({ open: 25, ended: 0, cut: 0, farewells: 0, wrong: 0, refused: 0, messages: 30, codes: {},
                     workers: { "7" => 25 } }, connections.report)
    end
  end

  def test_several_processes_share_what_one_may_not_open
    serve(SWITCH) { |socket| echo(socket) }
    connect("echo", count: Bench::Connections::MOST + 1) do |connections|
      assert_equal [7, 5, 3], [connections.open(7), connections.ask(5), connections.close(3)]
      assert_equal([4, 5], connections.report.values_at(:open, :messages))
    end
  end

  { "a_text_that_nobody_sent" => [TEXT, "7 hello"], "a_pong_to_no_ping" => [PONG, "12345678"],
    "a_kind_that_is_unknown" => [3, "x"], "a_close_frame_of_one_byte" => [CLOSE, "x"] }.each do |name, (opcode, text)|
    define_method("test_#{name}_is_wrong") { assert_wrong(frame(opcode, text)) }
  end

  def test_frames_that_are_masked_split_or_too_long_are_wrong
    assert_wrong([0x81, 0x81, 1, 2, 3, 4, 5].pack("C*"))
    assert_wrong([0x01, 1, 97].pack("C*"))
    assert_wrong([0xc1, 1, 97].pack("C*"))
    assert_wrong([0x89, 126, 0, 1, 97].pack("C*"))
    assert_wrong(frame(CLOSE, [1001].pack("n")) + frame(PING, ""))
  end

  def test_the_text_of_another_is_wrong
    serve(SWITCH) { |socket| receive(socket) && socket.write(frame(TEXT, "7 #{"x" * 10}")) }
    connect("echo") do |connections|
      connections.open(3)

      assert_equal [0, 3], [connections.ask(3), connections.report[:wrong]]
    end
  end

  def test_how_the_server_ends_them_is_counted
    serve(SWITCH, frame(CLOSE, [1012].pack("n"))) { |socket| receive(socket) }
    connect("echo") do |connections|
      connections.open(3)

      assert connections.part
      assert_equal({ ended: 3, cut: 0, codes: { "1012" => 3 } }, connections.report.slice(:ended, :cut, :codes))
    end
    serve(SWITCH)
    connect("echo") { |connections| connections.open(2) && assert_equal(2, parted(connections)[:cut]) }
  end

  def test_a_wrong_handshake_is_a_refusal
    serve(SWITCH.sub("s3p", "s4p"))
    connect("echo") { |connections| assert_equal [0, 2], [connections.open(2), connections.report[:refused]] }
    serve("HTTP/1.1 503 Service Unavailable\r\n\r\n")
    connect("events") { |connections| assert_equal [0, 2], [connections.open(2), connections.report[:refused]] }
  end

  def test_events_follow_one_another
    serve(STREAM, events("7 1", "7 2"), "0\r\n\r\n")
    connect("events") do |connections|
      assert_equal(2, connections.open(2))
      assert_equal({ ended: 2, cut: 0, wrong: 0, messages: 4 },
                   parted(connections).slice(:ended, :cut, :wrong, :messages))
    end
    [events("7 1", "7 3"), events("7 1", "7 1"), "3\r\nabc\r\n", "x\r\n"].each do |bytes|
      serve(STREAM, bytes)
      connect("events") { |connections| connections.open(1) && assert_equal(1, parted(connections)[:wrong], bytes) }
    end
  end

  def test_each_broadcast_comes_once_and_in_order
    ends = Queue.new
    serve(SWITCH, frame(TEXT, '{"type":"welcome"}')) do |socket|
      assert_includes receive(socket).last, "News::Channel"
      socket.write(frame(TEXT, '{"message":{"worker":7}}'), news(4, 5))
      ends.pop
      socket.write(frame(TEXT, '{"type":"disconnect"}'))
      receive(socket) # its own close frame
    end
    connect("cable") do |connections|
      assert_equal [2, 2], [connections.open(2), connections.await(5)]
      ends.close
      assert_equal({ farewells: 2, wrong: 0 }, parted(connections).slice(:farewells, :wrong))
    end
    [4, 7].each { |number| assert_wrong(news(5, number), kind: "cable") }
  end

  private

  # Its clients say on stderr what is wrong.
  def connect(kind, count: 10, &block)
    capture_subprocess_io do # Ruby 3.1 refuses an anonymous block in a block
      Bench::Connections.run(@listener.addr[1], count: count, kind: kind, path: "/", hosts: 3, &block)
    end
  end

  def assert_wrong(bytes, kind: "echo")
    serve(SWITCH, bytes, &:read)
    connect(kind) do |connections|
      connections.open(1)
      wait_until { connections.report[:wrong] == 1 }
    end
  end

  def parted(connections)
    assert connections.part
    connections.report
  end

  # Sends each client those bytes, and leaves it to the block; the connection ends with it.
  def serve(*bytes)
    teardown
    @sockets = []
    @listener = TCPServer.new("127.0.0.1", 0)
    Thread.new(@listener, @sockets) do |listener, sockets|
      loop do
        sockets << socket = listener.accept
        Thread.new do
          nil until socket.gets == "\r\n"
          socket.write(*bytes)
          yield socket if block_given?
        rescue SystemCallError, IOError
          nil # the client is gone
        ensure
          socket.close
        end
      end
    rescue IOError
      nil # the test is over
    end
  end

  def echo(socket)
    while (opcode, payload = receive(socket))
      case opcode
      when TEXT then socket.write(frame(TEXT, "7 #{payload}"))
      when PING then socket.write(frame(PONG, payload))
      when CLOSE then return socket.write(frame(CLOSE, payload))
      end
    end
  end

  # @return [Array(Integer, String), nil] a client's frame
  def receive(socket)
    first, second = socket.read(2)&.bytes
    return unless second

    size = second & 0x7f
    size = socket.read(2).unpack1("n") if size == 126
    size = socket.read(8).unpack1("Q>") if size == 127
    mask = socket.read(4).bytes.cycle
    [first & 0x0f, socket.read(size).bytes.map { |byte| byte ^ mask.next }.pack("C*")]
  end

  def frame(opcode, text)
    size = text.bytesize
    head = if size < 126 then [size].pack("C")
           else size < 65_536 ? [126, size].pack("Cn") : [127, size].pack("CQ>")
           end
    [0x80 | opcode].pack("C") + head + text.b
  end

  # In a chunk each.
  def events(*texts)
    texts.map { |text| "#{(text.size + 8).to_s(16)}\r\ndata: #{text}\n\n\r\n" }.join
  end

  def news(*numbers) = numbers.map { |number| frame(TEXT, "{\"message\":{\"number\":#{number}}}") }.join
end
