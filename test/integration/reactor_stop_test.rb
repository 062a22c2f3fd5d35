# frozen_string_literal: true

require "test_helper"
require "support/kept_connection"
require "support/servers"

# Promise: a stop answers all that was asked, says goodbye to waiting clients, and ends in time whatever clients do; a
# refork is not felt by clients that keep their connections.
class ReactorStopTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  # /held answers when the file "go" is there, /never never.
  APP = <<~'RUBY'
    run lambda { |env|
      hold_until("go") if env["PATH_INFO"] == "/held"
      Thread.handle_interrupt(Object => :never) { sleep } if env["PATH_INFO"] == "/never"
      body = env["PATH_INFO"] == "/large" ? "x" * env["QUERY_STRING"].to_i : "#{env["rack.input"].read} #{Process.pid}"
      [200, { "content-type" => "text/plain" }, [body]]
    }
  RUBY

  def teardown
    @connections&.each(&:close)
    super
  end

  def start(config, **options)
    @connections = []
    @server = serve(app: APP, config: "refork :manual\n#{config}", **options)
  end

  def connect
    Support::KeptConnection.new(@server.connect).tap { |connection| @connections << connection }
  end

  def ask(path, **how) = connect.ask(path, **how)
  def idle = ask("/").tap { |connection| assert_equal 200, connection.answer.status }

  def held(count)
    Array.new(count) { ask("/held") }.tap { @server.wait_until_busy(count) }
  end

  # By then the reactor knows of the stop.
  def stop_with(signal)
    witness = idle
    @server.wait_for("monitor.stopping", reason: signal) { @server.signal(signal) }
    assert_predicate witness, :ended?
  end

  def go = @server.write("go", "")

  def assert_ended(patience = 20)
    assert_equal 0, @server.wait_for_exit(patience).exitstatus
  end

  def assert_no_complaints
    assert_empty(@server.complaints)
  end

  def assert_last(connections)
    answers = connections.map(&:answer)
    assert_equal [200], answers.map(&:status).uniq
    assert answers.all?(&:last?), answers.reject(&:last?).map(&:head).inspect
    assert connections.all?(&:ended?)
  end

  %w[TERM QUIT INT].each do |signal|
    define_method("test_idle_connections_are_closed_at_once_and_the_running_request_is_answered_#{signal}") do
      start("workers 2\ntimeout 20, grace: 20")
      idle = Array.new(5) { idle() }
      silent = connect
      running = held(1)
      stop_with(signal)

      assert idle.all?(&:ended?)
      assert_predicate silent, :ended?
      assert_predicate running.first, :silent?
      go
      assert_last(running)
      assert_ended
      assert_no_complaints
    end
  end

  def test_what_waits_for_a_worker_is_served
    start("workers 1")
    running = held(1)
    waiting = Array.new(30) { |number| ask("/?#{number}") }
    stop_with_nobody_idle("TERM")
    go

    assert_last(running + waiting)
    assert_ended
    assert_no_complaints
  end

  def test_requests_sent_ahead_are_answered_to_the_last_that_is_promised
    start("workers 1")
    connection = ask("/held").ask("/").ask("/")
    @server.wait_until_busy(1)
    stop_with_nobody_idle("TERM")
    go

    answer = connection.answer
    assert_equal [200, true], [answer.status, answer.last?], "the client may ask again for the others"
    assert_ended
  end

  def test_int_leaves_nobody_without_an_answer
    start("workers 1\ntimeout 20, grace: 20")
    running = held(1)
    waiting = Array.new(40) { ask("/") }
    stop_with_nobody_idle("INT")
    go

    assert_last(running)
    answers = waiting.map(&:answer)
    assert_empty answers.map(&:status) - [200, 503]
    assert answers.all?(&:last?)
    assert_ended
  end

  def test_an_upload_that_ends_in_time_is_answered
    start("workers 1")
    upload = ask("/", verb: "POST", fields: "Content-Length: 6\r\n", body: "abc")
    stop_with("TERM")
    upload.socket.write("d")
    upload.socket.write("ef")

    answer = upload.answer
    assert_equal [200, "abcdef"], [answer.status, answer.body.split.first]
    assert_predicate answer, :last?
    assert_ended
    assert_no_complaints
  end

  def test_an_upload_that_does_not_end_is_cut_off_in_time
    start("workers 1\nstop_timeout 2")
    upload = ask("/", verb: "POST", fields: "Content-Length: 6\r\n", body: "abc")
    head = connect.tap { |connection| connection.socket.write("GET / HTTP/1.1\r\nHos") }
    stop_with("TERM")

    assert_match(%r{\AHTTP/1.1 408 }, head.rest)
    assert_ended(10)
    assert_equal "", upload.rest
  end

  # When the workers have left, nothing is left that could answer.
  def test_an_upload_that_ends_too_late_is_refused
    start("workers 1\nstop_timeout 8")
    upload = ask("/", verb: "POST", fields: "Content-Length: 6\r\n", body: "abc")
    stop_with("TERM")
    @server.wait_past("worker.exited")
    upload.socket.write("def")

    answer = upload.answer
    assert_equal [503, true], [answer.status, answer.last?]
    upload.close
    assert_ended
    assert_equal "stopping (1)", @server.events("requests.shed").last["reason"]
  end

  { "the_reactor_holds" => 400_000, "a_worker_must_wait_with" => 20_000_000 }.each do |what, size|
    define_method("test_a_slow_reader_gets_all_that_#{what}") do
      start("workers 1")
      reader = ask("/large?#{size}")
      first = reader.socket.readpartial(1000)
      stop_with_nobody_idle("TERM")

      text = first + reader.rest
      assert_equal size, text.split("\r\n\r\n", 2).last.bytesize
      assert_ended
      assert_no_complaints
    end

    define_method("test_who_does_not_read_what_#{what}_is_cut_off_in_time") do
      start("workers 1\nstop_timeout 2")
      reader = ask("/large?#{size}")
      reader.socket.readpartial(1000)
      stop_with_nobody_idle("TERM")

      assert_ended(10)
      assert_operator reader.rest.bytesize, :<, size
    end
  end

  def test_a_second_term_is_not_polite
    start("workers 1\nstop_timeout 60\ntimeout 60, grace: 60")
    running = ask("/never")
    waiting = ask("/")
    @server.wait_until_busy(1)
    @server.wait_for("monitor.stopping", reason: "TERM") { @server.signal("TERM") }
    @server.wait_for("monitor.stopping", reason: "TERM") { @server.signal_again("TERM") }

    assert_ended(10)
    assert_equal ["", ""], [running.rest, waiting.rest]
  end

  { "INT" => "timeout 20, grace: 0.5", "TERM" => "stop_timeout 0.5" }.each do |signal, config|
    define_method("test_who_is_served_for_too_long_is_told_so_#{signal}") do
      start("workers 1\n#{config}")
      running = ask("/never")
      @server.wait_until_busy(1)
      stop_with_nobody_idle(signal)

      answer = running.answer
      assert_equal [504, true], [answer.status, answer.last?]
      assert_ended
    end
  end

  # A late client knows it at once, and may turn to another server: one with the same addresses, say.
  def test_who_comes_during_a_stop_is_refused
    address = "127.0.0.1:#{free_port}"
    start("workers 1", arguments: ["-l", address])
    running = held(1)
    stop_with_nobody_idle("TERM")
    assert_raises(Errno::ECONNREFUSED) { @server.connect }
    assert_raises(Errno::ECONNREFUSED) { TCPSocket.new(*address.split(":")) }
    successor = serve(listen: address)
    later = Support::KeptConnection.new(TCPSocket.new(*address.split(":"))).ask("/")
    assert_match(/path=/, later.answer.body)
    go

    assert_last(running)
    assert_ended
    assert_equal 200, later.ask("/").answer.status
    assert_predicate successor.stop, :success?
  ensure
    later&.close
  end

  def test_afterwards_nobody_listens
    port = free_port
    start("workers 1", listen: "127.0.0.1:#{port}")
    connection = Support::KeptConnection.new(TCPSocket.new("127.0.0.1", port))
    assert_equal 200, connection.ask("/").answer.status
    @server.signal("TERM")

    assert_predicate connection, :ended?
    assert_ended
    assert_raises(Errno::ECONNREFUSED) { TCPSocket.new("127.0.0.1", port) }
  ensure
    connection&.close
  end

  def test_a_refork_with_a_full_queue
    start("workers 2")
    before = @server.workers.map(&:pid)
    kept = Array.new(20) { idle }
    running = held(2)
    waiting = Array.new(50) { ask("/") }
    @server.wait_for("refork.started") { @server.signal("USR2") }
    go
    assert_equal [[200, false]], (running + waiting).map(&:answer).map { |answer| [answer.status, answer.last?] }.uniq
    @server.wait_past("refork.finished")
    wait_until(message: "the old workers' end") { !@server.workers.map(&:pid).intersect?(before) }

    all = kept + running + waiting
    assert_equal([200], all.map { |connection| connection.ask("/").answer.status }.uniq)
    assert_no_complaints
    assert_predicate @server.stop, :success?
  end

  # All workers are busy: which process knows of the stop?
  def stop_with_nobody_idle(signal)
    witness = connect
    @server.wait_for("monitor.stopping", reason: signal) { @server.signal(signal) }
    assert_predicate witness, :ended?
  end
end
