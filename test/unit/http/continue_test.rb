# frozen_string_literal: true

require "test_helper"
require_relative "support/each_mode"

# Expect: 100-continue (RFC 9110 section 10.1.1).
class HTTPContinueTest < Minitest::Test
  extend HTTPSupport::EachMode

  CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n"
  EXPECT = "Expect: 100-continue\r\nConnection: close\r\n"

  def echo(**settings)
    serve(**settings) { |env| [200, {}, [env["rack.input"].read]] }
  end

  def post(fields, **options) = request(EXPECT + fields, verb: "POST", **options)

  in_each_mode "a_client_that_waits_is_invited_once" do
    echo
    { "Content-Length: 3\r\n" => "abc", "Transfer-Encoding: chunked\r\n" => "3\r\nabc\r\n0\r\n\r\n",
      "Content-Length: 50000\r\n" => "b" * 50_000 }.each do |fields, body|
      client = post(fields)
      assert_equal CONTINUE, head_of(client)
      client.write(body)
      answer = all_of(client)

      assert_match(/\AHTTP\S+ 200 /, answer)
      refute_includes answer, "100 Continue"
    end
  end

  in_each_mode "whatever_the_case_of_the_expectation" do
    echo
    client = request("expect: 100-Continue\r\nContent-Length: 1\r\n", verb: "POST")

    assert_equal CONTINUE, head_of(client)
  end

  in_each_mode "who_sends_at_once_is_not" do
    echo

    assert_match(/\AHTTP\S+ 200 .*abc\z/m, all_of(post("Content-Length: 3\r\n", behind: "abc")))
    assert_match(/\AHTTP\S+ 200 /m,
                 all_of(post("Transfer-Encoding: chunked\r\n", behind: "3\r\nabc\r\n0\r\n\r\n")))
  end

  in_each_mode "nor_who_sends_nothing" do
    echo

    assert_match(/\AHTTP\S+ 200 /, all_of(post("")))
    assert_match(/\AHTTP\S+ 200 /, all_of(request(EXPECT)))
  end

  in_each_mode "nor_http_1_0" do
    echo
    client = post("Content-Length: 3\r\n", version: "1.0")
    assert_nil client.wait_readable(0.05)
    client.write("abc")

    assert_match(/\AHTTP\S+ 200 .*abc\z/m, all_of(client))
  end

  in_each_mode "a_refused_body_gets_a_final_status_at_once" do
    events_of do
      echo(max_body_bytes: 10)

      assert_match(/\AHTTP\S+ 413 /, all_of(post("Content-Length: 11\r\n")))
    end
  end

  # Nothing more is sent: the size line decides, alone or with what came before.
  ["b\r\n", "6\r\nabcdef\r\n5\r\n", "fffffffffffffff;x\r\n"].each do |body|
    in_each_mode "a_chunk_announced_as_too_large_is_refused_at_once_#{body[/.*(?=\r\n)/m].gsub(/\W+/, "_")}" do
      events_of do
        echo(max_body_bytes: 10)

        assert_match(/\AHTTP\S+ 413 /, all_of(post("Transfer-Encoding: chunked\r\n", behind: body)))
      end
    end
  end

  in_each_mode "chunks_up_to_max_body_bytes_are_welcome" do
    echo(max_body_bytes: 10)

    assert_match(/\AHTTP\S+ 200 .*abcdefghij\z/m,
                 all_of(post("Transfer-Encoding: chunked\r\n", behind: "4\r\nabcd\r\n6\r\nefghij\r\n0\r\n\r\n")))
  end

  in_each_mode "other_expectations_are_ignored" do
    echo

    assert_match(/\AHTTP\S+ 200 /, all_of(request("Expect: 200-ok\r\nContent-Length: 1\r\nConnection: close\r\n",
                                                  verb: "POST", behind: "x")))
  end

  in_each_mode "who_is_invited_and_does_not_come_is_timed_out" do
    events_of do
      echo(body_timeout: 0.05)
      client = post("Content-Length: 3\r\n")
      assert_equal CONTINUE, head_of(client)

      assert_match(/\AHTTP\S+ 408 /, all_of(client))
    end
  end

  in_each_mode "who_is_invited_and_goes_is_not_served" do
    events_of do
      serve { flunk "served" }
      client = post("Content-Length: 3\r\n")
      head_of(client)
      client.close_write

      assert_match(/\AHTTP\S+ 400 /, all_of(client))
    end
  end
end
