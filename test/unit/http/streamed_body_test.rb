# frozen_string_literal: true

require "test_helper"
require_relative "support/each_mode"

# Setting stream_bodies: the application runs while its request's body arrives.
class HTTPStreamedBodyTest < Minitest::Test
  extend HTTPSupport::EachMode

  SIZED = "Content-Length: 10\r\n"
  CHUNKED = "Transfer-Encoding: chunked\r\n"

  def streaming(**settings, &block)
    serve(stream_bodies: ["/up"], **settings) { |env| [200, {}, [block.call(env["rack.input"], env).to_s]] }
  end

  def upload(fields = SIZED, **options) = request(fields, verb: "POST", path: "/up/load", **options)
  def body_of(client) = all_of(client)[/\r\n\r\n(.*)\z/m, 1]

  in_each_mode "the_application_reads_what_has_come" do
    read = Queue.new
    streaming { |input| (read << input.read(3)) && (read << input.readpartial(100)) && input.read }
    client = upload(behind: "abc")
    assert_equal "abc", read.pop
    client.write("def")
    assert_equal "def", read.pop
    client.write("ghij")

    assert_equal "ghij", body_of(client)
  end

  in_each_mode "chunked" do
    lines = Queue.new
    streaming { |input, env| input.each { |line| lines << line } && env["CONTENT_LENGTH"].inspect }
    client = upload(CHUNKED, behind: "3\r\nfir\r\n")
    client.write("7\r\nst\nseco\r\n")
    assert_equal "first\n", lines.pop
    client.write("2\r\nnd\r\n0\r\n\r\n")

    assert_equal "nil", body_of(client)
    assert_equal "second", lines.pop
  end

  in_each_mode "it_is_read_as_any_input" do
    streaming do |input, env|
      buffer = +"x"
      [input.read(0), input.read(2, buffer), buffer, input.gets, input.eof?, input.read(100), input.eof?,
       input.read, input.read(1), input.gets, input.size, env["CONTENT_LENGTH"],
       (input.readpartial(1) rescue $!.class), (input.rewind rescue $!.class)].inspect # rubocop:disable Style
    end

    assert_equal ["", "ab", "ab", "c\n", false, "efghij", true, "", nil, nil, 10, "10", EOFError, Errno::ESPIPE].inspect,
                 body_of(upload(behind: "abc\nefghij"))
  end

  in_each_mode "large_ones" do
    digest = ->(text) { text.unpack("N*").sum }
    data = Random.bytes(3_000_000)
    streaming(max_body_bytes: nil) do |input|
      sum = 0
      while (portion = input.read(40_000))
        sum += digest.call(portion)
      end
      sum
    end
    client = upload("Content-Length: 3000000\r\n")
    client.write(data)

    assert_equal digest.call(data).to_s, body_of(client)
  end

  in_each_mode "elsewhere_bodies_are_there" do
    streaming { |input, _env| input.class }
    client = request("#{SIZED}Connection: close\r\n", verb: "POST", path: "/upper", behind: "abcdefghij")

    assert_match(/StringIO\z/, all_of(client))
    assert_match(/NoBody\z/, all_of(request("Connection: close\r\n", path: "/up")))
  end

  in_each_mode "the_client_is_invited_when_the_body_is_wanted" do
    begun, gate = Array.new(2) { Queue.new }
    streaming { |input| (begun << true) && gate.pop && input.read }
    client = upload("#{SIZED}Expect: 100-continue\r\n")
    begun.pop
    assert_nil client.wait_readable(0)
    gate << true
    assert_equal "HTTP/1.1 100 Continue\r\n\r\n", head_of(client)
    client.write("abcdefghij")

    assert_equal "abcdefghij", body_of(client)
  end

  in_each_mode "who_does_not_want_it_invites_nobody" do
    streaming { "no" }

    assert_match(/\AHTTP\S+ 200 .*no\z/m, all_of(upload("#{SIZED}Expect: 100-continue\r\n")))
  end

  in_each_mode "an_unread_body_does_not_cost_the_answer" do
    streaming(max_body_bytes: nil) { "early" }
    client = upload("Content-Length: 1000000\r\n")
    head_of(client)
    client.write("x" * 1_000_000)

    assert_equal "early", client.read
  end

  { "too_large" => [413, CHUNKED, "6\r\nabcdef\r\n6\r\nabcdef\r\n0\r\n\r\n", { max_body_bytes: 10 }],
    "announced_as_too_large" => [413, CHUNKED, "6\r\nabcdef\r\n5\r\n", { max_body_bytes: 10 }],
    "malformed" => [400, CHUNKED, "3\r\nabc\r\nx\r\n", {}],
    "too_slow" => [408, SIZED, "abc", { body_timeout: 0.05 }] }.each do |kind, (status, fields, body, settings)|
    in_each_mode "#{kind}_is_noticed_while_it_is_read" do
      events = events_of do
        streaming(**settings) { |input| input.read(3) && input.read }

        assert_match(/\AHTTP\S+ #{status} /, all_of(upload(fields, behind: body)))
      end

      assert_equal([["request.refused", status]], events.map { |event| [event.name, event[:status]] })
      assert_equal(["127.0.0.1", "POST", "/up/load"], %i[remote method path].map { |key| events.first[key] })
    end
  end

  in_each_mode "a_client_that_stops_in_the_middle" do
    events_of do
      streaming { |input, _env| input.read }
      client = upload(behind: "abc")
      client.close_write

      assert_match(/\AHTTP\S+ 400 /, all_of(client))
    end
  end

  in_each_mode "a_client_that_goes_in_the_middle" do
    errors = Queue.new
    events = events_of do
      streaming do |input|
        input.read
      rescue IOError => e
        errors << e
        raise
      end
      client = upload(behind: "abc")
      wait_until { @served.worker.called(:job_deadline).any? }
      reset(client)

      assert_instance_of Pando::HTTP::ClientGone, errors.pop
      wait_for_jobs(1)
    end
    assert_empty events
  end

  in_each_mode "the_timeout_waits_for_the_client" do
    streaming { |input, _env| input.read }
    client = upload
    wait_until { @served.worker.called(:job_deadline).include?([:job_deadline, nil, 7.0]) }
    client.write("abcdefghij")

    assert_equal "abcdefghij", body_of(client)
    assert_operator @served.worker.called(:job_deadline).last[1], :>, 0
  end

  in_each_mode "an_echo_while_it_comes" do
    serve(stream_bodies: ["/up"]) do
      body = lambda do |stream|
        while (portion = stream.read_nonblock(100, exception: false))
          stream.write(portion)
        end
        stream.close
      end
      [200, {}, body]
    end
    client = upload(CHUNKED, behind: "3\r\nabc\r\n")
    head_of(client)
    assert_equal "3\r\nabc\r\n", client.read(8)
    client.write("3\r\ndef\r\n0\r\n\r\n")

    assert_equal "3\r\ndef\r\n0\r\n\r\n", all_of(client)
  end

  in_each_mode "it_is_closed_with_its_request" do
    inputs = Queue.new
    streaming { |input| (inputs << input) && "x" }
    body_of(upload)
    wait_for_jobs(1)
    input = inputs.pop

    assert_predicate input, :closed?
    assert_raises(IOError) { input.read }
  end

  in_each_mode "the_connection_may_be_taken_with_what_is_unread" do
    taken = Queue.new
    streaming { |_input, env| taken << env["rack.hijack"].call }
    upload(behind: "abcdefghij and more")
    socket = taken.pop

    assert_equal "abcdefghij and more", socket.read(19)
    socket.close
  end

  def test_behind_the_reactor_the_wait_for_a_worker_is_known
    @kind = HTTPSupport::ServedQueue
    streaming { |input, env| "#{input.read} #{env["pando.queue_time"].class}" }

    assert_equal "abcdefghij Float", body_of(upload(behind: "abcdefghij"))
    assert_match(/Float\z/, all_of(request("Connection: close\r\n")))
  end
end
