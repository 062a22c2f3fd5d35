# frozen_string_literal: true

require "test_helper"
require "tempfile"
require_relative "support/queued_case"

# A worker behind the reactor: what it takes, answers and does while nobody calls.
class HTTPQueuedWorkTest < Minitest::Test
  include HTTPSupport::QueuedCase

  def test_one_request_one_answer
    answer = stage(HELLO).get

    assert_equal [:end, true, "hello"], [answer.ending, answer.keep, body(answer)]
    assert_equal ["HTTP/1.1 200 OK", "content-type: text/plain", "content-length: 5"], head(answer).first(3)
    assert_equal [[:job_started, "GET", "/a", nil, nil], [:job_deadline, 20.0, 22.0], [:job_finished]],
                 @stage.worker.calls
  end

  def test_the_application_can_be_exchanged_between_two_requests
    stage(HELLO).get
    @stage.work.app = ->(_env) { [200, {}, ["another"]] }

    assert_equal "another", body(@stage.get)
  end

  # What the worker still held when it collects garbage would become old, and stay until a major collection.
  def test_nothing_of_a_request_is_kept_after_it
    kept = Class.new
    stage { |env| (env["kept"] = kept.new) && [204, {}, []] }
    Thread.new { @stage.get }.join # no stack frame may hold it either
    GC.start

    assert_equal 0, ObjectSpace.each_object(kept).count
  end

  def test_a_small_answer_is_one_frame_and_its_end
    stage(HELLO)
    turn = reactor.publish("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    @stage.work.ready(nil)
    frames = reactor.frames

    assert_equal([[:data, 1, turn, 0], [:end, 1, turn, 1]], frames.map { |frame| frame.to_a.first(4) })
  end

  def test_the_environment
    seen = nil
    stage { |env| (seen = env) && [204, {}, []] }.get("X-Request-Start: nonsense\r\n")

    assert_equal %w[192.0.2.7 /a b example.com],
                 seen.values_at("REMOTE_ADDR", "PATH_INFO", "QUERY_STRING", "SERVER_NAME")
    assert_instance_of Float, seen["pando.queue_time"]
    assert_includes 0.0..60.0, seen["pando.queue_time"]
    refute_includes seen, "pando.retry"
  end

  # As behind nginx: the moment when the request was complete, in milliseconds.
  def test_without_a_proxy_the_start_is_stamped
    seen = nil
    before = (Process.clock_gettime(Process::CLOCK_REALTIME) * 1000).to_i
    stage { |env| (seen = env) && [204, {}, []] }.get

    assert_match(/\A\d{13}\z/, seen["HTTP_X_REQUEST_START"])
    assert_includes (before - 2)..(Process.clock_gettime(Process::CLOCK_REALTIME) * 1000),
                    seen["HTTP_X_REQUEST_START"].to_i
    refute_includes seen, "puma.request_body_wait"
  end

  def test_a_proxys_stamp_stays
    seen = nil
    stage { |env| (seen = env) && [204, {}, []] }.get("X-Request-Start: t=17\r\n")

    assert_equal "t=17", seen["HTTP_X_REQUEST_START"]
  end

  def test_the_reactor_is_told_when_the_request_was_taken
    before = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    stage(HELLO).get

    assert_includes before..Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond), reactor.taken
  end

  def test_a_second_try_is_named
    seen = nil
    stage { |env| (seen = env) && [204, {}, []] }.get(flags: [:retry])

    assert_equal true, seen["pando.retry"]
  end

  def test_a_proxy_may_say_when_the_wait_began
    seen = []
    stage { |env| (seen << env["pando.queue_time"]) && [204, {}, []] }
    start = Process.clock_gettime(Process::CLOCK_REALTIME) - 7
    ["t=#{format("%.3f", start)}", (start * 1e3).to_i, (start * 1e6).to_i].each do |value|
      @stage.get("X-Request-Start: #{value}\r\n")
    end
    ["t=1", "9999999999", "1e10", "-5", "1000000000"].each { |value| @stage.get("X-Request-Start: #{value}\r\n") }

    assert(seen.first(3).all? { |seconds| (6.5..60).cover?(seconds) }, seen.inspect)
    assert(seen.drop(3).all? { |seconds| (0..6).cover?(seconds) }, seen.inspect)
  end

  def test_what_becomes_of_the_connection
    stage(HELLO)

    assert_equal [[], true], fate(@stage.get)
    [["Connection: close\r\n", {}], ["", { version: "1.0" }], ["", { flags: [:last] }]].each do |fields, options|
      answer = @stage.get(fields, **options)
      assert_equal [["connection: close"], false], fate(answer)
    end
    answer = @stage.get("Connection: keep-alive\r\n", version: "1.0")

    assert_equal [["connection: keep-alive"], true], fate(answer)
    reactor.drain!
    answer = @stage.get

    assert_equal [["connection: close"], false], fate(answer)
  end

  def test_the_application_may_close_the_connection
    answer = stage { [200, { "connection" => "foo, Close" }, ["x"]] }.get

    assert_equal [["connection: close"], false], fate(answer)
  end

  def test_a_body_of_unknown_length
    stage { [200, {}, %w[one two].each] }
    modern = @stage.get
    old = @stage.get("Connection: keep-alive\r\n", version: "1.0")

    assert_equal ["3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n", :end, true], [body(modern), modern.ending, modern.keep]
    assert_equal ["onetwo", :end, false, ["connection: close"]], [body(old), old.ending, old.keep, connection(old)]
  end

  def test_answers_without_a_body_keep_the_connection
    stage { |env| [env["HTTP_X"].to_i, {}, ["ignored"]] }

    assert_equal [true, ""], kept_and_body(@stage.get("X: 204\r\n"))
    assert_equal [true, ""], kept_and_body(@stage.get("X: 304\r\n"))
    assert_equal [true, ""], kept_and_body(@stage.get("X: 200\r\n", verb: "HEAD"))
    assert_equal [true, ""], kept_and_body(@stage.get("X: 205\r\n"))
  end

  def test_bodies_in_memory
    stage(ECHO)
    length = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"
    chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"

    assert_equal "5 StringIO true hello", body(@stage.serve(length, "hello"))
    assert_equal "11 StringIO true hello world", body(@stage.serve(chunked, "hello world"))
    assert_equal "0 StringIO true ", body(@stage.serve(chunked, ""))
    assert_equal "16000 StringIO true #{"x" * 20}", body(@stage.serve(length.sub("5", "16000"), "x" * 16_000))
  end

  def test_a_body_in_a_file
    stage(ECHO)
    head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 50000\r\n\r\n"

    assert_equal "50000 File true #{"y" * 20}", body(serve_file(head, "y" * 50_000, flags: [:body_in_file]))
  end

  def test_a_head_in_a_file
    stage(ECHO, max_header_bytes: 60_000)
    head = "POST / HTTP/1.1\r\nHost: a\r\nX: #{"x" * 20_000}\r\nContent-Length: 50000\r\n\r\n"
    answer = serve_file("", head + ("y" * 50_000), flags: [:all_in_file], sizes: [head.bytesize, 0])

    assert_equal "50000 File true #{"y" * 20}", body(answer)
    head = head.sub("50000", "0").sub("POST", "GET")

    assert_equal "0 Pando::HTTP::NoBody true ",
                 body(serve_file("", head, flags: [:all_in_file], sizes: [head.bytesize, 0]))
  end

  # The reactor's answer is on the socket before it is asked: the order does not matter to the worker.
  def serve_file(head, content, **options)
    Tempfile.create("body") do |file|
      file.binmode.write(content)
      file.flush
      turn = reactor.publish(head, file_bytes: content.bytesize, **options)
      Pando::Sys.send_record(reactor.socket, reactor.ticket(turn - 1), [file]) # of a request that is over
      Pando::Sys.send_record(reactor.socket, reactor.ticket(turn), [file])
    end
    @stage.work.ready(nil)
    frames = reactor.frames
    assert_equal :want_file, frames.first.kind
    HTTPSupport::FakeReactor::Answer.new(frames.map(&:payload).join, frames.last.kind)
  end

  def test_a_file_that_nobody_can_pass_is_an_abort
    stage(ECHO)
    turn = reactor.publish("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 50000\r\n\r\n", flags: [:body_in_file])
    Pando::Sys.send_record(reactor.socket, reactor.ticket(turn), [])
    @stage.work.ready(nil)

    assert_equal %i[want_file abort], reactor.frames.map(&:kind)
  end

  # As where no descriptor is free: the kernel cuts the record short, and drops what came with it.
  def test_what_got_lost_on_its_way_is_not_waited_for
    stage(ECHO)
    reactor.publish("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 50000\r\n\r\n", flags: [:body_in_file])
    Pando::Sys.send_record(reactor.socket, "x" * (Pando::HTTP::LaneLink::PACKET + 1), [])
    began = Pando::Sys.now
    @stage.work.ready(nil)

    assert_equal %i[want_file abort], reactor.frames.map(&:kind)
    assert_operator Pando::Sys.now - began, :<, Pando::HTTP::LaneLink::TIMEOUT
  end

  def test_the_connection_comes_over_the_socket_with_what_the_client_sent_ahead
    taken = nil
    stage { |env| (taken = env["rack.hijack"].call) && [200, {}, ["ignored"]] }
    client, connection = UNIXSocket.pair
    turn = reactor.publish("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    File.open(File::NULL) { |file| Pando::Sys.send_record(reactor.socket, reactor.ticket(turn - 1), [file]) }
    Pando::Sys.send_record(reactor.socket, "#{reactor.ticket(turn)}#{"a" * 16_384}", [connection])
    connection.close
    @stage.work.ready(nil)

    assert_equal [:want_socket], reactor.frames.map(&:kind)
    assert_equal "a" * 16_384, taken.readpartial(100_000)
    taken.write("raw")
    taken.close
    assert_equal "raw", client.read
  ensure
    client&.close
  end

  def test_a_connection_that_is_gone_is_an_ioerror_and_no_event
    failure = nil
    events = events_of do
      stage do |env|
        env["rack.hijack"].call
      rescue IOError => failure
        reactor.go
        raise
      end
      turn = reactor.publish("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      Pando::Sys.send_record(reactor.socket, reactor.ticket(turn), [])
      @stage.work.ready(nil)
    end

    assert_equal [:want_socket], reactor.frames.map(&:kind)
    assert_instance_of Pando::HTTP::ClientGone, failure
    assert_empty events
  end

  def test_a_client_that_went_stops_the_answer
    written = 0
    stage do
      pieces = Enumerator.new do |out|
        out << "one"
        reactor.go
        10.times { (written += 1) && (out << "more") }
      end
      [200, {}, pieces]
    end
    reactor.publish("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    @stage.work.ready(nil)
    kinds = reactor.frames.map(&:kind)

    assert_equal [[:data], 1], [kinds, written]
  end

  def test_a_request_whose_client_went_before_it_was_taken_is_not_served
    stage { flunk "served for nobody" }
    reactor.publish("GET / HTTP/1.1\r\nHost: a\r\n\r\n", gone: true)
    @stage.work.ready(nil)

    assert_equal [[], :copied], [reactor.frames, reactor.offer]
  end

  def test_nothing_is_said_about_a_request_that_is_another_reactors
    stage { reactor.begin_epoch && [200, {}, ["x"]] }
    reactor.publish("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    @stage.work.ready(nil)

    assert_empty reactor.frames
  end

  def test_errors_are_answered_and_half_answers_aborted
    stage { |env| env["HTTP_X"] ? [200, {}, Enumerator.new { |out| (out << "x") && raise("half") }] : raise("boom") }
    answers = nil
    events = events_of { answers = [@stage.get, @stage.get("X: 1\r\n")] }

    assert_equal [:end, true, "HTTP/1.1 500 Internal Server Error"],
                 [answers[0].ending, answers[0].keep, head(answers[0]).first]
    assert_equal :abort, answers[1].ending
    assert_equal(%w[boom half], events.map { |event| event[:error].message })
  end

  def test_what_the_application_kept_does_not_get_into_the_next_answer
    kept = nil
    stage do |env|
      kept&.then { |stream| assert_raises(IOError) { stream.write("smuggled") } }
      env["HTTP_X"] ? [200, {}, ->(stream) { (kept = stream).write("first") && raise("stop") }] : [200, {}, ["second"]]
    end
    events_of { @stage.get("X: 1\r\n") }

    assert_equal "second", body(@stage.get)
    refute_nil kept
  end

  def test_requests_that_should_not_have_come_through_are_refused
    stage(HELLO)
    events_of do
      { 400 => "GET / HTTP/1.1\r\n\r\n", 501 => "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n",
        421 => "GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n" }.each do |status, bytes|
        answer = @stage.serve(bytes)
        assert_equal [status, false, ["connection: close"]], [Integer(head(answer).first[/ (\d+) /, 1]), answer.keep,
                                                              connection(answer)]
      end
      assert_match(/ 400 /, @stage.serve("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET", "").bytes)
      assert_match(/ 400 /, @stage.serve("GET / HTTP/1.1\r\nHost: a\r\n", "").bytes)
    end
  end

  def test_sizes_that_do_not_fit_the_slot_are_an_abort
    stage(HELLO)
    [[20_000, 0], [0, 20_000], [0xffffffff, 0xffffffff], [16_384, 1]].each do |sizes|
      assert_equal [:abort, ""], @stage.get(sizes: sizes).to_a.first(2).reverse
    end
  end
end
