# frozen_string_literal: true

require "test_helper"
require "socket"
require "pando/measure"

# The clients of the load, against a server of the test's own.
class MeasureClientTest < Minitest::Test
  OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
  CLOSED = "the server closed the connection before the response was complete"

  def setup
    @listener = TCPServer.new("127.0.0.1", 0)
    @seen = Queue.new
  end

  def teardown
    @listener.close
    @acceptor&.join
  end

  def test_connections_are_kept_for_a_while
    serve { |socket, _| socket.write(OK) }
    answers = run_client(requests("/a") * 41)

    assert_equal([41, [200], [nil]], [answers.size, answers.map(&:status).uniq, answers.map(&:trouble).uniq])
    assert_equal([20, 20, 1], connections.values)
    assert(answers.all? { |answer| answer.seconds.positive? })
  end

  def test_as_many_at_once_as_there_are_clients
    waiting = []
    lock = Mutex.new
    serve do |socket, _|
      lock.synchronize { waiting.push(socket).size == 3 && waiting.shift(3).each { |each| answer(each) } }
    end

    assert_equal(6, run_client(requests("/a") * 6, clients: 3).size)
  end

  def test_headers_and_bodies
    serve { |socket, _| socket.write(OK) }
    run_client([line("POST /b c=d")], headers: { "Cookie" => "a=b", "Host" => "www.example.com" })
    head = @seen.pop.last

    assert_includes(head, "POST /b HTTP/1.1\r\nHost: www.example.com\r\n")
    assert_includes(head, "\r\nCookie: a=b\r\n")
    assert(head.end_with?("\r\nContent-Length: 3\r\n\r\nc=d"), head)
  end

  def test_a_body_has_the_type_that_is_given_for_all_requests
    serve { |socket, _| socket.write(OK) }
    run_client([line("POST /b c=d")], headers: { "content-type" => "application/json" })
    run_client([line("POST /b c=d")])
    types = Array.new(@seen.size) { @seen.pop.last.scan(/^content-type: .*(?=\r)/i) }

    assert_equal([["Content-Type: application/json"], ["Content-Type: application/x-www-form-urlencoded"]], types)
  end

  # A length without a body would leave the server waiting.
  def test_headers_about_the_connection_are_its_own
    serve { |socket, _| socket.write(OK) }
    framed = '{"path":"/a","headers":{"Content-Length":"0","Transfer-Encoding":"chunked","Connection":"close"}}'
    run_client([line(framed)] * 2)

    seen = Array.new(@seen.size) { @seen.pop }
    assert_equal([2], seen.map(&:first).tally.values)
    seen.map(&:last).each { |head| refute_match(/^(content-length|transfer-encoding):|: close/i, head) }
  end

  def test_what_is_no_good_answer_is_named
    serve { |socket, head| answer_badly(socket, head[/\S+ (\S+)/, 1]) }
    answers = run_client(requests("/500", "/garbage", "/half", "/moved"), clients: 1)

    assert_equal(["status 500", 'malformed response: wrong status line: "bye"',
                  CLOSED, nil], answers.map(&:trouble))
    assert_equal([true, "https://127.0.0.1/"], [answers.last.redirected?, answers.last.location])
  end

  # It answers a request that names what the client has already.
  def test_not_modified_is_no_redirection
    serve { |socket, _| socket.write("HTTP/1.1 304 x\r\n\r\n") }

    answer = run_client(requests("/a")).first

    assert_equal([304, false, nil], [answer.status, answer.redirected?, answer.trouble])
  end

  # Which is nobody's fault: the next request has not been sent yet.
  def test_a_kept_connection_that_was_closed_before_the_next_request
    serve { |socket, _| close_with(socket, OK) }

    assert_equal([nil], run_client(requests("/a", "/b", "/c")).map(&:trouble).uniq)
    assert_equal([1, 1, 1], connections.values)
  end

  # A server has it, and may have done what it says.
  def test_a_request_that_was_sent_and_is_not_answered_has_failed
    [false, true].each do |reset|
      served = Hash.new(0)
      serve { |socket, _| (served[socket] += 1) == 1 ? socket.write(OK) : drop(socket, reset) }
      answers = run_client([line("/a"), line("/b"), line("/c"), line("POST /d e")])

      assert_equal([nil, CLOSED, nil, CLOSED], answers.map(&:trouble))
      assert_equal(%w[/a /b /c /d], Array.new(@seen.size) { @seen.pop.last[/ (\S+)/, 1] })
      reopen
    end
  end

  # The length is that of a body which does not come.
  def test_answers_without_a_body
    serve { |socket, _| socket.write("HTTP/1.1 304 x\r\nContent-Length: 9\r\n\r\n") }

    assert_equal([nil], run_client([line("/a"), line("HEAD /b")]).map(&:trouble).uniq)
  end

  def test_nobody_listens
    port = @listener.addr[1]
    @listener.close
    answers = Pando::Measure::Client.new(port, headers: {}, clients: 2).run(requests("/a", "/b", "/c"))

    assert_equal(["the server refused the connection"] * 3, answers.map(&:trouble))
    assert_equal(6_000, Pando::Measure::Client.new(port, headers: {}, clients: 1).run(requests("/a") * 6_000).size)
  end

  private

  def requests(*paths) = paths.map { |path| line(path) }
  def line(text) = Pando::Doctor::RequestLine.new(text).request

  def run_client(requests, clients: 1, headers: {})
    Pando::Measure::Client.new(@listener.addr[1], headers: headers, clients: clients).run(requests)
  end

  # Requests by connection, in its order.
  def connections = Array.new(@seen.size) { @seen.pop.first }.tally

  def serve(&block)
    @acceptor = Thread.new do
      loop { Thread.new(@listener.accept) { |socket| converse(socket, &block) } }
    rescue IOError, Errno::EBADF
      nil
    end
  end

  def converse(socket)
    number = Object.new
    until socket.closed? || (head = socket.gets("\r\n\r\n")).nil?
      head += socket.read(head[/^Content-Length: (\d+)/, 1].to_i)
      @seen << [number, head]
      yield socket, head
    end
  rescue SystemCallError, IOError
    nil
  ensure
    socket.close
  end

  # A client closes its connection after its last answer, at which the socket's own thread closes the socket.
  def answer(socket)
    socket.write(OK)
  rescue IOError
    nil
  end

  # The end of the connection comes with the last byte, so it is there before the next request.
  def close_with(socket, text)
    socket.setsockopt(:TCP, :CORK, true)
    socket.write(text)
    socket.close
  end

  def drop(socket, reset)
    socket.setsockopt(:SOCKET, :LINGER, [1, 0].pack("ii")) if reset
    socket.close
  end

  def reopen
    teardown
    setup
  end

  def answer_badly(socket, path)
    case path
    when "/500" then socket.write("HTTP/1.1 500 x\r\nContent-Length: 0\r\n\r\n")
    when "/garbage" then socket.write("bye\r\n\r\n")
    when "/half" then socket.write(OK.chop) && socket.close
    else socket.write("HTTP/1.1 301 x\r\nLocation: https://127.0.0.1/\r\nContent-Length: 0\r\n\r\n")
    end
  end
end
