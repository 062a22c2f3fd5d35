# frozen_string_literal: true

require "test_helper"
require "pando/http"
require "socket"

# An ordinary answer sent in one step, and the end behind it.
class HTTPWireAnswerTest < Minitest::Test
  Wire = Pando::HTTP::Wire
  CLOSE = Pando::HTTP::ResponseHead::CLOSE
  PATIENCE = 90 # seconds
  FIELDS = { "a" => "b" }.freeze

  def setup
    server = TCPServer.new("127.0.0.1", 0)
    @far = TCPSocket.new("127.0.0.1", server.local_address.ip_port)
    @near = server.accept
    server.close
  end

  def teardown
    [@near, @far].each(&:close)
  end

  def test_it_is_sent_whole
    sent = answer(%w[hi there])
    finish

    text = @far.read
    assert_equal text.bytesize, sent
    assert_match(/\AL\r\na: b\r\ncontent-length: 7\r\ndate: [^\r]+\r\nconnection: close\r\n\r\nhithere\z/, text)
  end

  def test_a_client_that_has_said_more_than_was_read_gets_it_all
    @far.write("unread")
    @near.wait_readable(PATIENCE)
    sent = answer(%w[hi])
    finish

    assert_equal sent, read_all.bytesize
  end

  def test_what_the_socket_does_not_take_is_left_to_the_caller
    body = ["x" * 20_000]
    @near.setsockopt(:SOCKET, :SNDBUF, 4096)
    sent = nil
    sent = answer(body) until sent.is_a?(Array)

    done, text = sent
    assert_operator done, :<, text.bytesize
    assert_match(/\AL\r\na: b\r\ncontent-length: 20000\r\n/, text)
    assert text.end_with?("\r\n\r\n#{body.first}")
  end

  def test_what_is_not_ordinary_is_not_sent
    assert_nil answer([:hi])
    assert_nil Wire.answer(@near.fileno, "L\r\n", { "connection" => "close" }, ["hi"], CLOSE)
    finish

    assert_empty @far.read
  end

  def test_a_client_that_is_gone_is_told_of
    @far.setsockopt(Socket::Option.linger(true, 0))
    @far.close
    @near.wait_readable(PATIENCE)

    assert_raises(SystemCallError) { loop { answer(["hi"]) } }
  end

  private

  def answer(body) = Wire.answer(@near.fileno, "L\r\n", FIELDS, body, CLOSE)

  # The descriptor is the wire's own there; here it belongs to an IO.
  def finish
    descriptor = @near.fcntl(Fcntl::F_DUPFD, 0)
    @near.close
    Wire.close(descriptor)
  end

  # All that comes before the end, however that comes.
  def read_all
    text = +""
    loop { text << @far.readpartial(65_536) }
  rescue EOFError, Errno::ECONNRESET
    text
  end
end
