# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "socket"
require "tmpdir"
require "pando/measure"

# The first pass, with servers of the test's own.
class MeasureRehearsalTest < Minitest::Test
  Measure = Pando::Measure

  # A server that answers each path with a status, and redirects to TLS with 301.
  class Server < Measure::Subject
    ADDRESS = "127.0.0.1"

    attr_reader :name

    def initialize(name, folder, statuses)
      @name = name
      @statuses = statuses
      super(Struct.new(:environment).new("production"), workers: 2, folder: File.join(folder, name))
      Dir.mkdir(@folder)
      @listener = TCPServer.new(ADDRESS, 0)
      @thread = Thread.new { loop { converse(@listener.accept) } }
      @thread.report_on_exception = false
    end

    def port = @listener.addr[1]
    def says(text) = tap { File.write(error_path, text) }

    def close
      @thread.kill.join
      @listener.close
    end

    private

    def converse(socket)
      while (head = socket.gets("\r\n\r\n"))
        path = head[/ (\S+)/, 1]
        status = @statuses.fetch(path)
        location = "Location: https://#{ADDRESS}#{path}\r\n" if status == 301
        socket.write("HTTP/1.1 #{status} x\r\n#{location}Content-Length: 0\r\n\r\n") if status
        break unless status
      end
    ensure
      socket.close
    end
  end

  def setup
    @folder = Dir.mktmpdir
    @servers = []
  end

  def teardown
    @servers.each(&:close)
    FileUtils.rm_rf(@folder)
  end

  def test_what_one_does_not_answer_well_is_left_out_and_named
    puma = server("Puma", "/a" => 200, "/b" => 404, "/c" => 404, "/d" => nil)
    pando = server("Pando", "/a" => 302, "/b" => 404, "/c" => 200, "/d" => 200)
    rehearsal = rehearse(puma, pando, "/a", "/b", "/c", "/d")

    assert_equal([["GET /a"], 0], [rehearsal.selection.requests.map(&:to_s), rehearsal.redirected])
    assert_equal({ "answered with status 404" => ["GET /b"], "Puma answered with status 404" => ["GET /c"],
                   "Puma: the server closed the connection before the response was complete" => ["GET /d"] },
                 rehearsal.selection.left_out)
  end

  def test_requests_that_are_redirected_to_tls_are_sent_as_by_a_tls_proxy
    rehearsal = rehearse_with({ "Cookie" => "a=b" }, "/a")

    assert_predicate(rehearsal, :tls?)
    assert_equal({ "Cookie" => "a=b", "X-Forwarded-Proto" => "https" }, rehearsal.headers)
  end

  # With such a header of the user, or of the line, the second request would be the first one again.
  def test_requests_that_name_their_protocol_are_not_sent_over_tls
    http = { "x-forwarded-proto" => "http" }
    rehearsal = rehearse_with(http, "/a")

    refute_predicate(rehearsal, :tls?)
    assert_equal([http, 1], [rehearsal.headers, rehearsal.redirected])
    refute_predicate(rehearse_with({}, '{"path":"/a","headers":{"X-Forwarded-Proto":"http"}}'), :tls?)
  end

  # What is left of it says nothing about the application.
  def test_an_application_is_broken_if_half_of_its_requests_fail
    puma = server("Puma", "/a" => 200, "/b" => 200, "/c" => 200, "/d" => 404).says("no such table: puma")
    pando = server("Pando", "/a" => 200, "/b" => 500, "/c" => 503, "/d" => 404).says("no such table: posts")

    assert_match(/\A2 of 4 different requests failed with 5xx in the first pass \(Puma 0, Pando 2\): .*prepare/,
                 rehearse(puma, pando, "/a", "/b", "/c", "/d").broken)
    assert_nil(rehearse(puma, pando, "/a", "/b", "/d").broken)
  end

  def test_a_broken_application_without_a_known_reason
    broken = rehearse(server("Pando", "/a" => 200, "/b" => 500), "/a", "/b").broken

    assert_match(/\A1 of 2 different requests failed with 5xx .* \(Pando 1\): .* for the reason\.\z/, broken)
  end

  def test_the_side_that_failed_is_named_and_shown
    error = nothing_left(server("Puma", "/" => 200).says("Puma is well"),
                         server("Pando", "/" => 500).says("NoMethodError in Pando\nno such table: posts"))

    assert_match(%r{\APando: no request .* both answer without an error: GET /: Pando answered with status 500$}, error)
    assert_match(/db:prepare.*^NoMethodError in Pando$/m, error)
    refute_match(/Puma is well|has written/, error)
  end

  def test_both_are_named_if_both_failed
    error = nothing_left(server("Puma", "/" => 500).says("an error of Puma"),
                         server("Pando", "/" => 500).says("an error of Pando"))

    assert_match(%r{\APuma and Pando: no request .* both answer .* error: GET /: answered with status 500$}, error)
    assert_match(/^Output of Puma:\nan error of Puma\nOutput of Pando:\nan error of Pando\z/, error)
  end

  # A request that Puma does not answer either says nothing about it.
  def test_the_side_that_answers_nothing_is_the_one_that_failed
    error = nothing_left(server("Puma", "/" => 200, "/b" => 404).says("Puma is well"),
                         server("Pando", "/" => 401, "/b" => 401).says(""), "/", "/b")

    assert_match(/\APando: no request .*^.*--header "Cookie: /m, error)
    refute_includes(error, "Puma is well")
  end

  def test_pando_alone
    error = nothing_left(server("Pando", "/" => 500).says("an error"))

    assert_equal("Pando: no request is left that it answers without an error: GET /: answered with status 500\n" \
                 "an error", error)
  end

  private

  def server(name, statuses) = Server.new(name, @folder, statuses).tap { |server| @servers << server }

  def rehearse(*servers, **options)
    paths = servers.grep(String)
    selection = Measure::Selection.of_lines(paths, "a list", **options)
    Measure::Rehearsal.new(servers - paths, selection, {}).call
  end

  def rehearse_with(headers, line)
    name = "Pando#{@servers.size}"
    Measure::Rehearsal.new([server(name, "/a" => 301)], Measure::Selection.of_lines([line], "a list"), headers).call
  end

  def nothing_left(*arguments)
    arguments << "/" if arguments.grep(String).empty?
    assert_raises(Measure::NotMeasured) { rehearse(*arguments) }.message
  end
end

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

# The load, against a server of the test's own, which is this process.
class MeasureContestTest < Minitest::Test
  Measure = Pando::Measure
  MIB = 1 << 20
  Group = Struct.new(:memory_left)
  # A subject that lives as long as the test.
  Subject = Struct.new(:name, :port, :tree) do
    def alive? = true
    def facts = {}
  end

  def setup
    @listener = TCPServer.new("127.0.0.1", 0)
    @server = Thread.new { loop { Thread.new(@listener.accept) { |socket| serve(socket) } } }
    @server.report_on_exception = false
  end

  def teardown
    @server.kill.join
    @listener.close
  end

  def test_all_requests_are_sent
    contest = contest().call

    assert_nil(contest.cut_short)
    assert_equal([[40, [200]]], contest.sides.map { |side| [side.answers.size, side.answers.map(&:status).uniq] })
  end

  # A kernel without that file, or one that keeps it secret: 0 MiB would be a figure.
  def test_without_the_memory_of_other_processes_nothing_is_measured
    error = Pando::Sys::Memory.stub(:usage, nil) { assert_raises(Measure::NotMeasured) { contest.call } }

    assert_match(%r{the kernel does not tell the memory of other processes: /proc/PID/smaps_rollup}, error.message)
  end

  # The master's alone would be a figure, too.
  def test_without_the_memory_of_the_workers_nothing_is_measured
    worker = Process.spawn("sleep", "1000")
    usage = Pando::Sys::Memory.method(:usage).to_proc
    known = ->(pid) { usage.call(pid) unless pid == worker }
    error = Pando::Sys::Memory.stub(:usage, known) do
      assert_raises(Measure::NotMeasured) { contest(/\Asleep 1000/).call }
    end

    assert_match(%r{/proc/PID/smaps_rollup}, error.message)
    assert_nil(contest(/\Asleep 1000/).call.cut_short)
  ensure
    Process.kill("KILL", worker)
    Process.wait(worker)
  end

  def test_the_load_ends_before_the_memory_of_the_container_does
    contest = Pando::Sys::ControlGroup.stub(:new, Group.new(100 * MIB)) { contest().call }

    assert_equal("only 100 MiB of the container's memory were left", contest.cut_short)
    assert_equal([20], contest.sides.map { |side| side.answers.size })
  end

  def test_the_load_ends_before_the_memory_of_the_machine_does
    left = Pando::Sys::Memory::Left.new(150 * MIB, :machine)
    contest = Pando::Sys::Memory.stub(:left, left) { contest().call }

    assert_equal("only 150 MiB of the machine's memory were left", contest.cut_short)
  end

  private

  # Two workers' requests in two slices.
  def contest(worker = //)
    plan = Measure::Plan.new(workers: 2, requests: 20, clients: 2, headers: {}, against: :none)
    rehearsal = Struct.new(:selection, :headers).new(Measure::Selection.of_root, {})
    subject = Subject.new("Pando", @listener.addr[1], Measure::ProcessTree.new(Process.pid, worker))
    Measure::Contest.new([subject], rehearsal, plan, proc {})
  end

  def serve(socket)
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") while socket.gets("\r\n\r\n")
  rescue SystemCallError
    nil
  ensure
    socket.close
  end
end
