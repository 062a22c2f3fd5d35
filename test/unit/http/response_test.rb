# frozen_string_literal: true

require "test_helper"
require "tempfile"
require "time"
require_relative "support/served_work"

# What goes over the wire for each kind of body, request and status.
class HTTPResponseTest < Minitest::Test
  include HTTPSupport::Events

  # A body that answers to the methods named, and notes that it was closed.
  class Body
    attr_reader :closed, :called

    def initialize(*pieces, path: nil, array: false, &call)
      @closed = 0
      define_singleton_method(:to_path) { path } if path
      define_singleton_method(:to_ary) { pieces } if array
      call ? define_singleton_method(:call, &call) : define_singleton_method(:each) { |&block| pieces.each(&block) }
    end

    def close = @closed += 1
  end

  def teardown
    @served&.stop
  end

  def serve(status, fields, body, **options)
    @served = HTTPSupport::ServedWork.new(->(_) { [status, fields, body] }, **options).start
  end

  def test_an_array_is_sent_with_its_length
    answer = serve(200, { "content-type" => "text/plain" }, %w[hello wörld]).get

    assert_equal [200, "11", "close", "text/plain", "hellowörld".b],
                 [answer.status, answer["content-length"], answer["connection"], answer["content-type"], answer.body.b]
    assert_equal Time.now.utc.year, Time.httpdate(answer["date"]).year
    assert_nil answer["transfer-encoding"]
  end

  def test_an_empty_array_has_length_zero
    assert_equal "0", serve(200, {}, []).get["content-length"]
  end

  def test_to_ary_is_asked_before_each
    body = Body.new("a", "b", array: true)
    answer = serve(200, {}, body).get

    assert_equal %w[2 ab], [answer["content-length"], answer.body]
    assert_operator body.closed, :>=, 1
  end

  def test_an_enumerable_body_is_chunked
    body = Body.new("one", "", "two")
    answer = serve(200, {}, body).get

    assert_equal ["chunked", nil], [answer["transfer-encoding"], answer["content-length"]]
    assert_equal ["one", "two", ""], answer.chunks
    assert_equal 1, body.closed
  end

  def test_an_enumerable_body_ends_with_the_connection_for_an_old_client
    answer = serve(200, {}, Body.new("one", "two")).get("/", version: "1.0")

    assert_equal [nil, nil, "onetwo"], [answer["transfer-encoding"], answer["content-length"], answer.body]
  end

  def test_an_enumerable_body_with_a_length_is_sent_as_it_is
    answer = serve(200, { "Content-Length" => "6" }, Body.new("one", "two")).get

    assert_equal [nil, "6", "onetwo"], [answer["transfer-encoding"], answer["content-length"], answer.body]
  end

  def test_never_more_than_the_length
    [Body.new("one", "two"), %w[one two]].each do |body|
      answer = serve(200, { "content-length" => "4" }, body).get

      assert_equal %w[4 onet], [answer["content-length"], answer.body]
      @served.stop
    end
    @served = nil
  end

  def test_less_than_the_length_is_a_failure_that_the_client_notices
    served = serve(200, { "content-length" => "9" }, Body.new("one"))
    events = events_of { assert_raises(Errno::ECONNRESET) { served.get } }

    assert_match(/6 bytes shorter/, events.first[:error].message)
  end

  def test_a_streaming_body_writes_as_it_likes
    body = Body.new do |stream|
      stream << "one" << "two"
      stream.write("three", 4)
      stream.flush
      stream.close
    end
    answer = serve(200, {}, body).get

    assert_equal ["one", "two", "three", "4", ""], answer.chunks
    assert_equal 1, body.closed
  end

  def test_a_streaming_body_reads_the_request
    body = Body.new { |stream| stream << stream.read(2) << "-" << stream.read }
    answer = serve(200, {}, body).post("hello")

    assert_equal "he-llo", answer.chunks.join
  end

  def test_a_streaming_body_that_forgets_to_close
    assert_equal ["one", ""], serve(200, {}, Body.new { |stream| stream << "one" }).get.chunks
  end

  def test_a_streaming_body_reaches_the_client_at_once
    gate = Queue.new
    served = serve(200, {}, Body.new { |stream| stream.write("one") && gate.pop })
    socket = served.connect
    socket.write("GET / HTTP/1.0\r\n\r\n")
    socket.gets("\r\n\r\n")

    assert_equal "one", socket.read(3)
  ensure
    gate << true
    socket&.close
  end

  def test_a_body_with_each_and_call_is_enumerated
    body = Body.new("each")
    def body.call(_) = raise("called")

    assert_equal ["each", ""], serve(200, {}, body).get.chunks
  end

  def test_a_file_is_sent_by_its_path
    Tempfile.create do |file|
      file.write("x" * 300_000)
      file.flush
      body = Body.new("never seen", path: file.path)
      answer = serve(200, {}, body).get

      assert_equal ["300000", "x" * 300_000], [answer["content-length"], answer.body]
      assert_equal 1, body.closed
    end
  end

  def test_a_path_that_is_no_file_or_another_length_is_enumerated
    Tempfile.create do |file|
      [[file.path, { "content-length" => "4" }], ["/nonexistent", {}], [Dir.tmpdir, {}]].each do |path, fields|
        assert_includes serve(200, fields, Body.new("each", path: path)).get.body, "each"
        @served.stop
      end
    end
    @served = nil
  end

  def test_head_sends_no_body_and_closes_it
    { [] => nil, { "content-length" => "5" } => "5" }.each do |fields, length|
      body = Body.new("hello")
      answer = serve(200, fields.to_h, body).get("/", verb: "HEAD")

      assert_equal [200, length, nil, ""], [answer.status, answer["content-length"], answer["transfer-encoding"],
                                            answer.body]
      assert_equal 1, body.closed
      @served.stop
    end
    @served = nil
  end

  def test_204_and_304_have_no_body
    { 204 => nil, 304 => "5" }.each do |status, length|
      body = Body.new("hello")
      answer = serve(status, { "content-length" => "5", "etag" => "x" }, body).get

      assert_equal [status, length, nil, "x", ""],
                   [answer.status, answer["content-length"], answer["transfer-encoding"], answer["etag"], answer.body]
      assert_equal 1, body.closed
      @served.stop
    end
    @served = nil
  end

  def test_205_says_that_it_is_empty
    answer = serve(205, {}, Body.new("x")).get

    assert_equal ["0", ""], [answer["content-length"], answer.body]
  end

  def test_a_body_that_the_application_has_chunked_is_left_alone
    answer = serve(200, { "Transfer-Encoding" => "chunked" }, Body.new("3\r\none\r\n", "0\r\n\r\n")).get

    assert_equal ["one", ""], answer.chunks
  end

  def test_what_belongs_to_the_server_is_not_taken_from_the_application
    answer = serve(200, { "Connection" => "keep-alive", "Keep-Alive" => "5", "status" => "200 OK", "rack.x" => "y",
                          "Date" => "then" }, []).get

    assert_equal(["close", nil, nil, nil, "then"],
                 %w[connection keep-alive status rack.x date].map { |name| answer[name] })
  end

  def test_a_field_of_the_servers_that_is_nil_says_nothing
    answer = serve(200, { "Date" => nil, "Content-Length" => nil, "transfer-encoding" => nil }, ["one"]).get

    assert_equal [200, "3", "one"], [answer.status, answer["content-length"], answer.body]
    assert_equal Time.now.utc.year, Time.httpdate(answer["date"]).year
  end

  def test_several_values_are_an_array
    assert_equal %w[a=1 b=2], serve(200, { "set-cookie" => %w[a=1 b=2] }, []).get["set-cookie"]
  end

  def test_several_values_in_the_way_of_rack2
    Pando::HTTP::Environment.stub(:rack_release, [2, 2]) do
      assert_equal %w[a=1 b=2], serve(200, { "set-cookie" => "a=1\nb=2" }, []).get["set-cookie"]
    end
  end

  BAD = {
    [200, { "x" => "a\r\nset-cookie: evil" }] => "line feed",
    [200, { "x" => ["a\0"] }] => "control character",
    [200, { "set-cookie" => "a=1\nb=2" }] => "several values are an Array",
    [200, { "set-cookie" => ["a=1\nb=2"] }] => "several values are an Array",
    [200, { "x" => "a\n" }] => "line feed",
    [200, { "x\r\nset-cookie" => "a" }] => "not a field name",
    [200, { "x y" => "a" }] => "not a field name",
    [200, { "content-length" => "-1" }] => "not a length",
    [200, { "content-length" => "1\r\n1" }] => "not a length",
    [200, { "transfer-encoding" => "gzip" }] => "does not end with chunked",
    [100, {}] => "not a final status",
    [101, {}] => "not a final status",
    [99, {}] => "not a final status",
    [1000, {}] => "not a final status",
    ["x", {}] => "not a final status",
    [nil, {}] => "not a final status"
  }.freeze

  BAD.each do |(status, fields), reason|
    define_method("test_500_instead_of_#{status.inspect}_#{fields}") do
      served = serve(status, fields, body = Body.new("x"))
      answer = nil
      events = events_of { answer = served.get }

      assert_equal [500, "500 Internal Server Error\n"], [answer.status, answer.body]
      assert_equal "request.failed", events.first.name
      assert_includes events.first[:error].message, reason
      assert_equal 1, body.closed
    end
  end

  def test_other_statuses
    { "404" => 404, 299 => 299, 999 => 999 }.each do |given, sent|
      assert_equal sent, serve(given, {}, []).get.status
      @served.stop
    end
    @served = nil
  end

  def test_a_body_that_yields_no_string
    assert_equal 500, serve(200, {}, Body.new(1)).get.status
  end
end
