# frozen_string_literal: true

require "test_helper"
require_relative "support/each_mode"

# 103 before the answer (RFC 8297).
class HTTPEarlyHintsTest < Minitest::Test
  extend HTTPSupport::EachMode

  LINK = { "link" => "</a.css>; rel=preload" }.freeze
  HINT = "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n"

  def hinting(fields = LINK, **settings, &answer)
    @results = Queue.new
    serve(early_hints: true, **settings) do |env|
      @results << env["rack.early_hints"]&.call(fields)
      answer ? answer.call(env) : [200, {}, ["answer"]]
    end
  end

  in_each_mode "they_come_before_the_answer" do
    gate = Queue.new
    hinting { gate.pop && [200, {}, ["answer"]] }
    client = request("Connection: close\r\n")
    assert_equal HINT, head_of(client)
    gate << true

    assert_match(/\AHTTP\S+ 200 OK\r\n.*\r\n\r\nanswer\z/m, all_of(client))
    assert_equal true, @results.pop
  end

  in_each_mode "several_of_them" do
    serve(early_hints: true) do |env|
      env["rack.early_hints"].call("Link" => "a\nb")
      env["rack.early_hints"].call("link" => %w[c d], "X" => nil)
      [200, {}, ["answer"]]
    end

    assert_operator all_of(request("Connection: close\r\n")), :start_with?,
                    "HTTP/1.1 103 Early Hints\r\nLink: a\r\nLink: b\r\n\r\n" \
                    "HTTP/1.1 103 Early Hints\r\nlink: c\r\nlink: d\r\n\r\nHTTP/1.1 200"
  end

  in_each_mode "what_would_frame_a_body_is_left_out" do
    hinting(LINK.merge("content-length" => "5", "transfer-encoding" => "chunked", "connection" => "close",
                       "status" => "200", "rack.hijack" => proc {}))

    assert_operator all_of(request("Connection: close\r\n")), :start_with?, "#{HINT}HTTP/1.1 200"
  end

  in_each_mode "nothing_is_injected" do
    [{ "link" => "a\r\n\r\nHTTP/1.1 200 OK" }, { "li nk" => "a" }, { "a: b\r\nlink" => "a" },
     { "link" => "x" * 20_000 }].each do |fields|
      events = events_of do
        hinting(fields)
        assert_match(/\AHTTP\S+ 500 /, all_of(request("Connection: close\r\n")))
      end

      assert_instance_of Pando::HTTP::InvalidResponse, events.first[:error]
      @served.stop
    end
    @served = nil
  end

  in_each_mode "old_clients_get_none_and_nobody_unless_it_is_set" do
    seen = Queue.new
    app = ->(env) { (seen << env.key?("rack.early_hints")) && [200, {}, []] }
    serve(app, early_hints: true)
    all_of(request(version: "1.0"))
    @served.stop
    serve(app)
    all_of(request("Connection: close\r\n"))

    assert_equal [false, false], [seen.pop, seen.pop]
  end

  in_each_mode "too_late_is_without_effect" do
    kept = Queue.new
    serve(early_hints: true) do |env|
      hints = env["rack.early_hints"]
      kept << hints
      [200, {}, Enumerator.new { |out| (out << "one") && (out << hints.call(LINK).inspect) }]
    end

    assert_match(/\AHTTP\S+ 200 .*3\r\none\r\n5\r\nfalse\r\n/m, all_of(request("Connection: close\r\n")))
    wait_for_jobs(1)
    assert_equal false, kept.pop.call(LINK)
  end

  in_each_mode "an_exception_after_them_is_answered" do
    events_of do
      hinting { raise "boom" }

      assert_operator all_of(request("Connection: close\r\n")), :start_with?, "#{HINT}HTTP/1.1 500 "
    end
  end

  in_each_mode "the_socket_may_be_taken_after_them" do
    hinting do |env|
      env["rack.hijack"].call.then { |socket| socket.write("raw") && socket.close }
      [200, {}, []]
    end

    assert_equal "#{HINT}raw", all_of(request)
  end

  in_each_mode "after_an_invitation_to_continue" do
    hinting { |env| [200, {}, [env["rack.input"].read]] }
    client = request("Expect: 100-continue\r\nContent-Length: 3\r\nConnection: close\r\n", verb: "POST")
    assert_equal "HTTP/1.1 100 Continue\r\n\r\n", head_of(client)
    client.write("abc")

    assert_match(/\A#{Regexp.escape(HINT)}HTTP\S+ 200 .*abc\z/m, all_of(client))
  end

  in_each_mode "a_client_that_is_gone_is_none_the_wiser" do
    asked = Queue.new
    gate = Queue.new
    events = events_of do
      serve(early_hints: true) do |env|
        asked << true
        gate.pop
        2.times { env["rack.early_hints"].call(LINK) }
        [200, {}, []]
      end
      client = request
      asked.pop
      reset(client)
      gate << true
      wait_for_jobs(1)
    end

    assert_empty events
  end
end
