# frozen_string_literal: true

require "test_helper"
require_relative "support/each_mode"

# Partial hijack (the response field rack.hijack), and upgrades to another protocol.
class HTTPPartialHijackTest < Minitest::Test
  extend HTTPSupport::EachMode

  SPEC = %i[read read_nonblock write write_nonblock << flush close close_read close_write closed?].freeze

  def hijacked(fields = {}, status = 200, &callback)
    serve do |env|
      next [200, {}, ["answer"]] if env["PATH_INFO"] == "/ask"

      [status, { **fields, "rack.hijack" => ->(stream) { callback.call(stream, env) } }, ["ignored"]]
    end
  end

  def body_of(text) = text.split("\r\n\r\n", 2).last

  in_each_mode "the_callback_writes_the_body_and_ends_it" do
    hijacked({ "x" => "y" }) do |stream|
      SPEC.each { |name| assert_respond_to stream, name }
      stream << "one" << "two"
      stream.close
    end
    text = all_of(request("Connection: close\r\n"))

    assert_match(/\r\nx: y\r\n/, text)
    refute_match(/rack/, text)
    assert_equal "3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n", body_of(text)
  end

  in_each_mode "a_stream_outlives_its_request" do
    streams = Queue.new
    hijacked { |stream| (streams << stream) && stream.write("early") }
    client = request
    assert_match(/\AHTTP\S+ 200 OK/, head_of(client))
    wait_for_jobs(1)
    stream = streams.pop

    assert_match(/answer\z/, ask)
    stream.write("late")
    assert_equal "5\r\nearly\r\n4\r\nlate\r\n", Timeout.timeout(20) { client.read(19) }
    stream.close
    assert_equal "0\r\n\r\n", all_of(client)
    assert_raises(IOError) { stream.write("later") }
  end

  in_each_mode "threads_write_while_the_request_ends" do
    hijacked do |stream|
      Thread.new do
        300.times { |index| stream.write("#{index}\n") }
        stream.close
      end
    end
    bodies = Array.new(5) { body_of(all_of(request(version: "1.0"))) }

    assert_equal [(0...300).map { |index| "#{index}\n" }.join], bodies.uniq
  end

  in_each_mode "all_that_was_answered_before_comes_first" do
    streams = Queue.new
    hijacked { |stream| stream.write("x" * 3_000_000) && (streams << stream) }
    client = request(version: "1.0")
    Thread.new { streams.pop.tap { |stream| stream.write("end") }.close }

    body = body_of(all_of(client))

    assert_equal ["x", 3_000_003, "end"], [body[0], body.bytesize, body[-3..]]
  end

  in_each_mode "an_announced_length_is_kept_and_one_that_is_not_resets" do
    streams = Queue.new
    hijacked({ "content-length" => "4" }) { |stream| (streams << stream) && stream.write("ab") }
    client = request
    head_of(client)
    wait_for_jobs(1)
    streams.pop.then { |stream| stream.write("cdef") && stream.close }
    assert_equal "abcd", all_of(client)

    client = request
    wait_for_jobs(2)
    assert_raises(Pando::HTTP::InvalidResponse) { streams.pop.close }
    assert_raises(Errno::ECONNRESET) { all_of(client) }
  end

  in_each_mode "an_encoding_of_the_application_s_own" do
    hijacked({ "transfer-encoding" => "chunked" }) { |stream| stream.write("3\r\nabc\r\n0\r\n\r\n") && stream.close }

    assert_equal "3\r\nabc\r\n0\r\n\r\n", body_of(all_of(request("Connection: close\r\n")))
  end

  in_each_mode "it_reads_the_request_s_body" do
    hijacked do |stream, _env|
      stream.write(stream.read(3), stream.read_nonblock(2), stream.read_nonblock(1, exception: false).inspect)
      assert_raises(EOFError) { stream.read_nonblock(1) }
      stream.close_read
      assert_raises(IOError) { stream.read }
      refute_predicate stream, :closed?
      stream.close
      assert_predicate stream, :closed?
    end

    assert_equal "abcdenil", body_of(all_of(request("Content-Length: 5\r\n", version: "1.0", behind: "abcde")))
  end

  in_each_mode "whoever_writes_to_nobody_gets_an_ioerror" do
    errors = Queue.new
    hijacked do |stream|
      Thread.new do
        loop { stream.write("x" * 10_000) }
      rescue IOError => e
        errors << e
        stream.close_read
      end
    end
    client = request
    head_of(client)
    reset(client)

    assert_instance_of Pando::HTTP::ClientGone, errors.pop
    assert_match(/answer\z/, ask)
  end

  in_each_mode "an_exception_in_the_callback_is_no_whole_answer" do
    events = events_of do
      hijacked { |stream| stream.write("one") && raise("boom") }
      client = request
      wait_for_jobs(1)
      assert_raises(Errno::ECONNRESET) { all_of(client) }
    end

    assert_equal(%w[boom], events.map { |event| event[:error].message })
  end

  in_each_mode "answers_without_a_body_do_not_call_it" do
    hijacked { flunk "called" }

    assert_match(/\AHTTP\S+ 200 /, all_of(request("Connection: close\r\n", verb: "HEAD")))
  end

  # --- 101 ---

  in_each_mode "an_upgrade_has_the_socket" do
    sockets = Queue.new
    hijacked({ "upgrade" => "echo", "connection" => "x" }, 101) { |socket| sockets << socket }
    client = request("Connection: upgrade\r\nUpgrade: echo\r\n", behind: "ahead")

    assert_match(/\AHTTP\S+ 101 Switching Protocols\r\nupgrade: echo\r\ndate: .*\r\nconnection: upgrade\r\n\r\n\z/,
                 head_of(client))
    socket = sockets.pop
    wait_for_jobs(1)
    client.write("there")

    assert_equal %w[ahead there], [socket.readpartial(100), socket.readpartial(100)]
    socket.write("back")
    socket.close
    assert_equal "back", all_of(client)
  end

  in_each_mode "an_upgrade_by_a_streaming_body_ends_with_it" do
    serve { [101, { "upgrade" => "echo" }, ->(stream) { stream.write(stream.gets.upcase) }] }
    client = request("Upgrade: echo\r\n")
    head_of(client)
    client.write("line\n")

    assert_equal "LINE\n", all_of(client)
  end

  in_each_mode "a_callback_that_raises_closes_what_it_was_given" do
    events = events_of do
      hijacked({ "upgrade" => "echo" }, 101) { raise "boom" }
      client = request("Upgrade: echo\r\n")
      head_of(client)

      assert_equal "", all_of(client)
      wait_for_jobs(1)
    end

    assert_equal(%w[boom], events.map { |event| event[:error].message })
  end

  in_each_mode "no_upgrade_unless_it_was_asked_for_and_somebody_goes_on" do
    events_of do
      serve do |env|
        body = env["PATH_INFO"] == "/nobody" ? ["x"] : ->(_stream) { flunk "called" }
        [101, { "upgrade" => "echo" }, body]
      end

      [[[""], {}], [["Upgrade: echo\r\n"], { version: "1.0" }],
       [["Upgrade: echo\r\n"], { path: "/nobody" }]].each do |(fields), options|
        assert_match(/\AHTTP\S+ 500 /, all_of(request("#{fields}Connection: close\r\n", **options)))
      end
    end
  end

  # The stream may outlive the callback, and then the connection goes with it.
  in_each_mode "the_head_says_that_the_connection_ends_with_the_stream" do
    streams = Queue.new
    hijacked({ "content-length" => "3" }) { |stream| (streams << stream) && stream.write("on") }
    kept = "Connection: keep-alive\r\n"
    [["", "1.1"], [kept, "1.1"], [kept, "1.0"]].each do |fields, version|
      client = request(fields, version: version)
      assert_equal ["close"], head_of(client).scan(/^connection: (.*)\r$/i).flatten
      streams.pop.then { |stream| stream.write("e") && stream.close }

      assert_equal "one", all_of(client)
    end
  end

  in_each_mode "the_connection_ends_although_the_stream_ends_in_time" do
    hijacked({ "content-length" => "3" }) { |stream| stream.write("one") && stream.close }
    client = request

    assert_match(/^connection: close\r$/, head_of(client))
    assert_equal "one", all_of(client)
  end
end
