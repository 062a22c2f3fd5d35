# frozen_string_literal: true

require "test_helper"
require "pando/http/direct_handler"
require_relative "support/served_work"

# One connection after another, whatever the application and its clients do.
class HTTPWorkTest < Minitest::Test
  include HTTPSupport::Events
  include HTTPSupport::Serving

  ECHO = lambda do |env|
    body = env["rack.input"].read
    [200, {}, ["#{body.bytesize} #{env["CONTENT_LENGTH"].inspect} #{env["rack.input"].class} #{body[0, 20]}"]]
  end

  def test_the_worker_is_told_what_is_going_on
    serve(ECHO).get("/a/b?secret=1")
    wait_until { @served.worker.calls.size == 3 }

    assert_equal [[:job_started, "GET", "/a/b", nil, nil], [:job_deadline, 20.0, 22.0], [:job_finished]],
                 @served.worker.calls
  end

  def test_the_application_can_be_exchanged_between_two_requests
    serve(ECHO).get
    @served.work.app = ->(_env) { [200, {}, ["another"]] }

    assert_equal "another", @served.get.body
  end

  def test_without_a_timeout_there_is_no_deadline
    serve(ECHO, timeout: nil).get

    assert_empty @served.worker.called(:job_deadline)
  end

  def test_bodies_in_memory_and_in_a_file
    serve(ECHO)

    assert_equal "5 \"5\" StringIO hello", @served.post("hello").body
    assert_equal "50000 \"50000\" File #{"x" * 20}", @served.post("x" * 50_000).body
    assert_equal "0 \"0\" Pando::HTTP::NoBody ", @served.post("").body
  end

  def test_chunked_bodies
    serve(ECHO)
    body = "5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nX: y\r\n\r\n"
    large = "#{"3e8\r\n#{"y" * 1000}\r\n" * 50}0\r\n\r\n"

    assert_equal "11 \"11\" StringIO hello world", @served.post(body, "Transfer-Encoding: chunked\r\n").body
    assert_equal "50000 \"50000\" File #{"y" * 20}", @served.post(large, "Transfer-Encoding: chunked\r\n").body
    assert_equal "0 \"0\" StringIO ", @served.post("0\r\n\r\n", "Transfer-Encoding: chunked\r\n").body
  end

  def test_a_body_may_be_read_again
    serve do |env|
      first = env["rack.input"].read
      env["rack.input"].rewind
      [200, {}, [(first == env["rack.input"].read).to_s]]
    end

    assert_equal %w[true true], [@served.post("a" * 100).body, @served.post("b" * 5000).body]
  end

  def test_a_request_that_arrives_byte_by_byte
    serve(ECHO)
    socket = @served.connect
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n".each_char do |byte|
      socket.write(byte)
    end

    assert_includes socket.read, "hello"
  ensure
    socket&.close
  end

  def test_a_client_that_waits_is_told_to_continue
    serve(ECHO)
    socket = @served.connect
    socket.write("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")

    assert_equal "HTTP/1.1 100 Continue\r\n\r\n", socket.gets("\r\n\r\n")
    socket.write("hello")
    assert_includes socket.read, "5 \"5\" StringIO hello"
  ensure
    socket&.close
  end

  def test_an_exception_after_an_invitation_is_still_answered
    serve { raise "boom" }
    socket = @served.connect
    socket.write("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n")
    socket.gets("\r\n\r\n")
    socket.write("x")

    assert_match(%r{\AHTTP/1.1 500 }, socket.read)
  ensure
    socket&.close
  end

  [RuntimeError, NotImplementedError, SystemStackError, LoadError, NoMemoryError, Exception].each do |error|
    define_method("test_500_and_an_event_for_#{error}") do
      serve { raise error, "boom" }
      answer = nil
      events = events_of { answer = @served.get("/path?secret") }

      assert_equal 500, answer.status
      refute_includes answer.bytes, "boom"
      assert_equal ["request.failed", 1, 2, "GET", "/path", "boom"],
                   [events.first.name, *%i[slot generation method path].map { |key| events.first[key] },
                    events.first[:error].message]
      assert_operator events.first[:seconds], :>=, 0
      assert_equal 500, @served.get.status
    end
  end

  def test_the_time_in_a_proxys_queue
    seen = []
    serve { |env| (seen << env.key?("pando.queue_time") << env["pando.queue_time"]) && raise("boom") }
    start = Process.clock_gettime(Process::CLOCK_REALTIME)
    ["", "X-Request-Start: nonsense\r\n"].each { |fields| @served.get("/", fields) }
    assert_equal [false, nil] * 2, seen

    events = events_of { @served.get("/", "X-Request-Start: t=#{format("%.3f", start - 7)}\r\n") }
    assert_includes 6.5..60.0, seen.last
    assert_equal seen.last, events.first[:queued]
    @served.get("/", "X-Request-Start: #{((start + 0.5) * 1000).to_i}\r\n") # its clock is ahead of ours

    assert_includes 0.0..60.0, seen.last
  end

  def test_a_worker_without_memory_is_replaced
    serve { raise NoMemoryError }
    @served.get
    wait_until { @served.worker.called(:job_finished).any? }

    assert_equal [[:leave, "out of memory"]], @served.worker.called(:leave)
  end

  def test_exit_answers_and_then_ends_the_process
    serve { exit(3) }

    assert_equal 500, @served.get.status
    assert_equal 3, assert_raises(SystemExit) { @served.stop }.status
    assert_empty @served.worker.called(:job_finished), "nobody could tell which request has ended it"
    @served = nil
  end

  def test_a_callback_that_runs_out_of_memory_has_its_worker_replaced
    serve do |env|
      env["rack.response_finished"] << ->(*) { raise NoMemoryError }
      [200, {}, []]
    end
    events_of { @served.get }
    wait_until { @served.worker.called(:job_finished).any? }

    assert_equal [[:leave, "out of memory"]], @served.worker.called(:leave)
  end

  def test_an_exception_in_the_middle_of_a_body_is_no_whole_answer
    pieces = Enumerator.new { |out| (out << "one") && raise("boom") }
    serve { [200, {}, pieces] }
    events = events_of do
      assert_raises(Errno::ECONNRESET) { @served.get }
      assert_raises(Errno::ECONNRESET) { @served.get("/", version: "1.0") }
    end

    assert_equal(%w[boom boom], events.map { |event| event[:error].message })
  end

  def test_an_exception_before_the_first_piece_is_answered
    serve { [200, {}, Enumerator.new { raise "boom" }] }

    assert_equal 500, @served.get.status
  end

  def test_bodies_are_closed_whatever_happens
    closed = Queue.new
    body = Object.new
    body.define_singleton_method(:each) { |&_| raise "boom" }
    body.define_singleton_method(:close) { closed << true }
    serve { [200, {}, body] }
    @served.get

    assert closed.pop
  end

  def test_an_exception_of_close_is_reported_and_costs_nobody_anything
    body = ["x"]
    def body.close = raise("boom")
    serve { [200, {}, body] }
    events = events_of { assert_equal "x", @served.get.body }

    assert_equal "boom", events.first[:error].message
  end

  def test_callbacks_of_rack_3_run_in_reverse_when_the_client_has_its_answer
    told = Queue.new
    gate = Queue.new
    serve do |env|
      env["rack.response_finished"] << ->(*arguments) { told << [:first, *arguments.drop(1)] }
      env["rack.response_finished"] << ->(*) { raise "boom" }
      env["rack.response_finished"] << ->(*arguments) { gate.pop && (told << [:last, *arguments.drop(1)]) }
      raise "failed" if env["PATH_INFO"] == "/fail"

      [200, { "x" => "y" }, []]
    end
    events = events_of do
      assert_equal 200, @served.get.status
      gate << true
      assert_equal [:last, 200, { "x" => "y" }, nil], told.pop
      assert_equal [:first, 200, { "x" => "y" }, nil], told.pop
    end
    assert_equal "boom", events.first[:error].message

    gate << true
    assert_equal 500, @served.get("/fail").status
    assert_equal([:last, 500, nil, "failed"], told.pop.then { |one| [*one.first(3), one.last.message] })
  end

  # NotImplementedError and LoadError are no StandardErrors.
  def test_a_callback_may_raise_anything
    told = Queue.new
    serve do |env|
      env["rack.response_finished"] << ->(*) { told << :called } << ->(*) { raise NotImplementedError, "boom" }
      [200, {}, []]
    end
    events = events_of { 2.times { assert_equal [200, :called], [@served.get.status, told.pop] } }

    assert_equal([NotImplementedError] * 2, events.map { |event| event[:error].class })
  end

  def test_the_hook_after_each_request
    seen = Queue.new
    serve { [200, {}, []] }
    @served.worker.hooks[:after_request_complete] = ->(env) { seen << env["PATH_INFO"] }
    @served.get("/hooked")

    assert_equal "/hooked", seen.pop
  end

  def test_a_hook_that_raises_reaches_the_worker_when_the_job_is_over
    serve { [200, {}, []] }
    @served.worker.hooks[:after_request_complete] = ->(_) { raise Pando::HookError, "boom" }

    assert_equal 200, @served.get.status
    assert_raises(Pando::HookError) { @served.stop }
    assert_equal [:job_finished], @served.worker.calls.last
    @served = nil
  end

  def test_a_client_that_leaves_early_is_no_failure
    gate = Queue.new
    serve do |env|
      gate.pop if env["PATH_INFO"] == "/slow"
      [200, {}, Enumerator.new { |out| 100.times { out << ("x" * 100_000) } }]
    end
    events = events_of do
      socket = @served.connect
      socket.setsockopt(:SOCKET, :LINGER, [1, 0].pack("ii"))
      socket.write("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
      wait_until { @served.worker.called(:job_deadline).any? }
      socket.close
      gate << true
      assert_equal 200, @served.get.status
    end

    assert_empty events
  end

  def test_whoever_is_refused_is_named_and_what_it_asked_for_if_that_is_known
    serve
    events = events_of do
      assert_equal 400, @served.exchange("GET / HTTP/1.1\r\n\r\n").status
      assert_equal 413, @served.post("", "Content-Length: 100001\r\n").status
    end

    assert_equal([[400, "127.0.0.1", nil, nil], [413, "127.0.0.1", "POST", "/"]],
                 events.map { |event| %i[status remote method path].map { |key| event[key] } })
  end

  def test_over_a_unix_socket
    Dir.mktmpdir do |dir|
      serve(->(env) { [200, {}, env.values_at("REMOTE_ADDR", "SERVER_NAME")] }, unix: "#{dir}/socket")

      assert_equal "127.0.0.1example.com", @served.get.body
    end
  end

  def test_a_leaving_worker_takes_no_more_but_what_it_was_woken_for
    served = HTTPSupport::ServedWork.new(->(_) { [200, {}, []] })
    served.worker.leaving = true
    client = served.connect
    client.write("GET / HTTP/1.0\r\n\r\n")
    served.work.idle
    served.work.ready(served.listener)
    assert_empty served.worker.calls

    served.work.stop
    assert_match(/\AHTTP\S+ 200 /, client.read)
  ensure
    client&.close
    served&.stop
  end

  def test_when_the_server_ends_nobody_is_let_in_whom_no_worker_will_serve
    served = HTTPSupport::ServedWork.new(->(_) { [200, {}, []] })
    client = served.connect
    client.write("GET / HTTP/1.0\r\n\r\n")
    served.work.stop(Pando::Sys.now + 10)

    assert_match(/\AHTTP\S+ 200 /, client.read)
    assert_raises(Errno::ECONNREFUSED) { served.connect }
    served.work.stop(Pando::Sys.now + 10)
  ensure
    client&.close
    served&.stop
  end

  def test_an_idle_worker_looks_for_connections_nobody_told_it_about
    served = HTTPSupport::ServedWork.new(->(_) { [200, {}, []] })
    served.work.idle
    client = served.connect
    client.write("GET / HTTP/1.0\r\n\r\n")
    served.work.idle

    assert_match(/\AHTTP\S+ 200 /, client.read)
  ensure
    client&.close
    served&.stop
  end

  def test_sources_are_exclusive
    served = HTTPSupport::ServedWork.new(nil)

    assert_equal([[served.listener, :exclusive]], served.work.sources.map { |one, manner| [one.socket, manner] })
  ensure
    served&.stop
  end

  def test_no_descriptor_is_left_behind
    serve(ECHO)
    [-> { @served.get }, -> { @served.post("x" * 5000) }, -> { @served.exchange("GARBAGE\r\n\r\n") }].each(&:call)
    before = Dir.children("/proc/self/fd").size
    5.times { [@served.get, @served.post("x" * 5000), @served.exchange("GARBAGE\r\n\r\n")] }
    wait_until { Dir.children("/proc/self/fd").size <= before }

    assert_operator Dir.children("/proc/self/fd").size, :<=, before
  end
end
