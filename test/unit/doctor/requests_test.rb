# frozen_string_literal: true

require "test_helper"
require "pando/doctor/requests"
require "pando/native"
require "tempfile"

# A request as it is sent to a worker.
class DoctorRequestTest < Minitest::Test
  def test_headers_replace_the_doctors_own_whatever_their_case
    env = environment("POST", { "host" => "example.com", "USER-AGENT" => "tests", "accept" => "text/plain" }, "abc")

    assert_equal ["example.com", "tests", "text/plain", "3"],
                 env.values_at("HTTP_HOST", "HTTP_USER_AGENT", "HTTP_ACCEPT", "CONTENT_LENGTH")
  end

  def test_its_own_headers_come_before_those_of_all_requests
    request = Pando::Doctor::Request.new(verb: "GET", target: "/a", headers: { "cookie" => "own" }, body: nil)

    assert_equal({ "cookie" => "own", "X-A" => "b" }, request.with_headers("Cookie" => "all", "X-A" => "b").headers)
    assert_equal({ "cookie" => "own" }, request.headers)
  end

  def test_only_the_same_address_over_tls_is_sent_to_tls
    request = Pando::Doctor::Request.new(verb: "GET", target: "/a?b=\u00e9", headers: {}, body: nil)
    elsewhere = ["http://x/a?b=\u00e9", "https://x/", "/a?b=\u00e9", "https://x/a?b=\xE9", nil]

    assert request.sent_to_tls?("https://x:8443/a?b=\u00e9".b)
    elsewhere.each { |location| refute request.sent_to_tls?(location), location.inspect }
  end

  # The doctor frames the body and ends the connection.
  def test_headers_about_the_connection_are_the_doctors_own
    hers = { "connection" => "keep-alive", "content-length" => "99", "Transfer-Encoding" => "chunked" }

    ["abc", nil].each do |body|
      env = environment("POST", hers, body)
      assert_equal [body&.bytesize&.to_s, "close", nil],
                   env.values_at("CONTENT_LENGTH", "HTTP_CONNECTION", "HTTP_TRANSFER_ENCODING")
    end
  end

  private

  # As Pando's own server understands the request.
  def environment(verb, headers, body)
    text = Pando::Doctor::Request.new(verb: verb, target: "/", headers: headers, body: body).to_http
    head = text[/\A.*?\r\n\r\n/m]
    parser = Pando::HTTP::Parser.new(4096, 512, 20)
    assert_equal true, parser.run(head), parser.reason
    parser.environment({}, head, nil, "*")
  end
end

# A line of a list or of a log; see also DoctorRequestListTest.
class DoctorRequestLineTest < Minitest::Test
  def test_a_log_of_rails_with_tags_or_without
    plain = 'Started GET "/posts?page=2" for 127.0.0.1 at 2026-11-23 21:42:02 +0000'
    tagged = 'I, [2026-11-23T21:42:02 #17]  INFO -- : [3d2f] Started HEAD "/up" for ::1 at 2026-11-23 21:42:02 +0000'

    assert_equal(["GET /posts?page=2", "HEAD /up"], [plain, tagged].map { |text| line(text).request.to_s })
    assert_predicate(line(plain), :logged?)
  end

  def test_other_lines_of_such_a_log
    ["Processing by PostsController#index as HTML", "  Parameters: {\"page\"=>\"2\"}",
     "Completed 200 OK in 5ms (Views: 3.1ms | ActiveRecord: 0.3ms)", "Started GET \"/a b\" for ::1",
     "Started GET \"http://\" for"].each { |text| assert_nil(line(text).request, text) }
  end

  # A log may record parameters, or each header's values.
  def test_a_line_of_a_log_has_a_request_whatever_else_it_records
    ['{"method":"GET","path":"/x","body":{"a":1},"status":200}',
     '{"method":"GET","path":"/x","headers":{"Accept":["text/html"]},"status":200}',
     '{"method":"GET","path":"/x","headers":[],"status":200}'].each do |text|
      assert_equal(["GET /x", {}, nil], [line(text).request.to_s, *line(text).request.to_h.values_at(:headers, :body)])
      assert_predicate(line(text), :logged?)
    end
  end

  def test_a_line_of_a_log_without_a_request_is_from_a_log
    ['{"method":"GET","path":7,"status":200}', '{"message":"booted","time":1}'].each do |text|
      assert_nil(line(text).request)
      assert_predicate(line(text), :logged?)
    end
  end

  def test_what_does_more_than_read
    refute_predicate(line('Started POST "/posts" for ::1 at 2026'), :safe?)
    assert_predicate(line('Started POST "/posts" for ::1 at 2026'), :logged?)
    refute_predicate(line("POST /posts title=a"), :logged?)
    assert_predicate(line("HEAD /posts"), :safe?)
  end

  def test_an_empty_line_is_none
    ["", "  \n", "# GET /"].each { |text| assert_predicate(line(text), :empty?) }
    refute_predicate(line("hello"), :empty?)
  end

  private

  def line(text) = Pando::Doctor::RequestLine.new(text)
end

# What the doctor asks the application.
class DoctorRequestListTest < Minitest::Test
  RequestList = Pando::Doctor::RequestList

  def test_paths_and_methods
    assert_equal(["GET /notes", "DELETE /notes/1", "GET /a?b=c"], texts("/notes", "DELETE /notes/1", "/a?b=c"))
  end

  def test_a_body_is_a_form
    request = list("POST /notes text=hello world").requests.first

    assert_equal("text=hello world", request.body)
    assert_includes(request.to_http, "Content-Type: application/x-www-form-urlencoded\r\nConnection: close\r\n" \
                                     "Content-Length: 16\r\n\r\ntext=hello world")
  end

  # One for all requests comes before the doctor's own, and one of the line before both.
  def test_a_body_may_have_another_type
    json = { "content-type" => "application/json" }
    form = list("POST /notes {}").requests.first.with_headers(json)
    text = list('{"method":"POST","path":"/","headers":{"Content-Type":"text/plain"},"body":"a"}').requests.first

    assert_equal(["content-type: application/json"], form.to_http.scan(/^content-type: .*(?=\r)/i))
    assert_equal(["Content-Type: text/plain"], text.with_headers(json).to_http.scan(/^content-type: .*(?=\r)/i))
    refute_match(/^content-type/i, list("/notes").requests.first.to_http)
  end

  # The others may be hidden ([FILTERED]), belong to another session or cache, or frame what the log left out.
  def test_of_the_headers_of_a_log_only_those_of_the_content_are_replayed
    request = list('{"path":"/a","status":200,"headers":{"Cookie":"[FILTERED]","If-None-Match":"x","Host":"x",' \
                   '"Content-Length":"9","accept":"text/html","Accept-Language":"de"}}').requests.first

    assert_equal({ "accept" => "text/html", "Accept-Language" => "de" }, request.headers)
    assert_match(/^Cookie: mine\r$/, request.with_headers("Cookie" => "mine").to_http)
  end

  def test_a_log_in_common_and_combined_format
    common = '::1 - - [10/Oct/2024:13:55:36 +0000] "GET /a HTTP/1.1" 200 12'
    combined = '10.0.0.1 - bob [10/Oct/2024:13:55:36 +0000] "HEAD /b?c HTTP/2.0" 200 0 "http://x/" "curl/8"'

    assert_equal(["GET /a", "HEAD /b?c"], texts(common, combined))
  end

  def test_of_a_log_only_what_is_safe_is_replayed
    list = list('x - - [1] "POST /a HTTP/1.1" 200 1', '{"method":"DELETE","path":"/b"}')

    assert_empty(list.requests)
  end

  # Such a line is from a log, whatever else the log records.
  def test_of_a_log_of_json_with_headers_and_bodies_only_what_is_safe_is_replayed
    %w[status duration time timestamp @timestamp].each do |key|
      lines = [%({"method":"DELETE","path":"/a","headers":{"Accept":"text/html"},"#{key}":1}),
               %({"method":"POST","path":"/a","body":"b=c","#{key}":1}),
               %({"method":"GET","path":"/a","headers":{"Accept":"text/html"},"#{key}":1})]

      assert_equal(["GET /a"], texts(*lines), key)
      assert_equal({ "Accept" => "text/html" }, list(*lines).requests.first.headers)
    end
  end

  def test_lines_of_json
    lines = ['{"method":"get","path":"/a"}', '{"request_method":"GET","uri":"https://example.com/b?c=d","status":200}',
             '{"verb":"PUT","target":"/e","headers":{"Content-Type":"text/plain"},"body":"f"}', '{"url":"http://example.com"}']

    assert_equal(["GET /a", "GET /b?c=d", "PUT /e", "GET /"], texts(*lines))
    assert_includes(list(lines[2]).requests.first.to_http, "Content-Type: text/plain\r\n")
  end

  def test_a_body_that_is_null_is_none
    request = list('{"method":"GET","path":"/a","headers":{"X":"y"},"body":null}').requests.first

    assert_equal(["GET /a", nil, { "X" => "y" }], [request.to_s, request.body, request.headers])
  end

  # The line of a list is a mistake; a log has other lines too.
  def test_lines_of_a_list_that_are_no_requests_are_counted
    list = list("/a", "", "# a comment", "get /notes", "https://example.com/notes", "/search?q=a b", "POST /b c")

    assert_equal([5, [4, 5, 6]], [list.lines, list.unread])
    assert_empty(list('1.1.1.1 - - [1] "GET /a HTTP/1.1" 200 1', "Completed 200 OK").unread)
    assert_empty(list("/a").unread)
  end

  # Such lines may be a log's, so that no POST is sent, but as likely someone has written them.
  def test_lines_of_json_that_are_no_requests_are_counted
    assert_equal([2], list('{"method":"GET","path":"/a"}', '{"method":"GET","path":"b"}').unread)
    assert_empty(list('{"method":"GET","path":"/a","status":200}', '{"method":"GET","path":"b"}').unread)
  end

  def test_each_request_once_in_its_order_and_no_more_than_the_limit
    assert_equal(["GET /b", "GET /a"], texts("/b", "/a", "/b"))
    assert_equal(RequestList::LIMIT, list(*(1..500).map { |number| "/#{number}" }).requests.size)
  end

  def test_nothing_is_smuggled_into_a_request
    hostile = ["GET /a\u0000b", "/a b", '{"path":"/a\r\nX: y"}', '{"path":"/","headers":{"X":"a\r\nb: c"},"body":"x"}',
               '{"path":"/","headers":{"X: y":"z"}}', '{"path":7}', '{"path":"relative"}', "{", "hello", "get /"]

    hostile.each { |line| assert_empty(list(line).requests, line) }
  end

  def test_empty_lines_and_comments_are_nothing
    assert_empty(list("", "  ", "# GET /a").requests)
  end

  def test_a_file_without_requests_is_wrong
    Tempfile.create do |file|
      file.write("hello\n\xff\xfe\n")
      file.close
      assert_match(/holds no request/, assert_raises(Pando::UsageError) { RequestList.read(file.path) }.message)
    end
    assert_raises(Pando::UsageError) { RequestList.read("/no/such/file") }
  end

  private

  def list(*lines) = RequestList.new(lines)
  def texts(*lines) = list(*lines).requests.map(&:to_s)
end
