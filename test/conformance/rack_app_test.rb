# frozen_string_literal: true

require "test_helper"
require "digest"
require "securerandom"
require "support/servers"
require_relative "../unit/http/support/served_work" # for Answer

# What the Rack 3 specification promises an application, and what becomes of the
# answers that it allows: the real server with support/rack_app.rb, behind the
# reactor and in direct mode.
module RackAppConformance
  APP = File.expand_path("support/rack_app", __dir__)
  PATIENCE = 90

  NUMBERS = Array.new(10) { |number| "#{number}\n" }.freeze

  def self.included(test)
    class << test
      # One server for all tests of a mode.
      def server
        @server ||= Support::ServerProcess.start(
          app: "require #{APP.inspect}\nrun RackApp.new",
          config: "workers 2\nrefork false\nearly_hints true\nbody_memory 20_000\nreactor #{reactor}"
        ).tap { |server| Minitest.after_run { server.kill } }
      end
    end
  end

  def server = self.class.server

  def teardown
    @clients&.each(&:close)
    super
  end

  # @return [Socket] on which this was sent
  def request(path, verb: "GET", fields: "", body: nil, close: true, version: "1.1")
    fields += "Content-Length: #{body.bytesize}\r\n" if body
    fields += "Connection: close\r\n" if close
    socket = server.connect
    (@clients ||= []) << socket
    socket.write("#{verb} #{path} HTTP/#{version}\r\nHost: example.org\r\n#{fields}\r\n#{body}")
    socket
  end

  def ask(path, **how)
    HTTPSupport::Answer.new(all_of(request(path, **how)))
  end

  def all_of(socket)
    wait_readable(socket)
    socket.read
  end

  def wait_readable(socket) = socket.wait_readable(PATIENCE) || flunk("no answer within #{PATIENCE} s")

  def body_of(answer) = answer["transfer-encoding"] == "chunked" ? answer.chunks.join : answer.body
  def text(path, **how) = body_of(ask(path, **how))
  def json(path, **how) = JSON.parse(text(path, **how))
  def env(path, **how) = json(path, **how)

  def fresh(name) = "#{name}-#{SecureRandom.hex(4)}"
  def path_of(name) = File.join(server.folder, name)

  # @return [Array<String>] the lines that the application has left
  def notes(name, count = 1)
    wait_until(timeout: PATIENCE, message: name) do
      lines = File.exist?(path_of(name)) ? File.readlines(path_of(name), chomp: true) : []
      lines if lines.size >= count
    end
  end

  # --- the environment

  def test_what_names_the_request
    env = env("/env?a=b%20c&d", verb: "PATCH")

    assert_equal(["PATCH", "", "/env", "a=b%20c&d", "HTTP/1.1"],
                 env.values_at("REQUEST_METHOD", "SCRIPT_NAME", "PATH_INFO", "QUERY_STRING", "SERVER_PROTOCOL"))
    assert_equal "", env("/env")["QUERY_STRING"]
  end

  def test_what_names_the_server
    assert_equal(%w[example.org 80 http], env("/env").values_at("SERVER_NAME", "SERVER_PORT", "rack.url_scheme"))
    assert_equal(["elsewhere.net", "8080", "/env"],
                 env("http://elsewhere.net:8080/env").values_at("SERVER_NAME", "SERVER_PORT", "PATH_INFO"))
    assert_match(%r{\Apando/\d}, env("/env")["SERVER_SOFTWARE"])
  end

  def test_fields
    env = env("/env", fields: "X-Some: one\r\nX-Some: two\r\nContent-Type: text/x\r\nX_Other: y\r\n", body: "abc")

    assert_equal(["one, two", "text/x", "3", "example.org"],
                 env.values_at("HTTP_X_SOME", "CONTENT_TYPE", "CONTENT_LENGTH", "HTTP_HOST"))
    assert_empty env.keys & %w[HTTP_CONTENT_TYPE HTTP_CONTENT_LENGTH HTTP_X_OTHER]
  end

  def test_that_connections_can_be_taken_over
    assert_equal true, env("/env")["rack.hijack?"]
  end

  def test_options
    assert_equal "OPTIONS /", text("/", verb: "OPTIONS")
    assert_equal "OPTIONS *", text("*", verb: "OPTIONS")
  end

  def test_what_the_application_says_on_its_error_stream
    assert_equal 200, ask("/errors").status
    wait_until(timeout: PATIENCE, message: "both lines") { server.output.include?("told by write") }
    assert_includes server.output, "told by puts\n"
  end

  def test_rack_lint_has_nothing_to_say
    assert_equal "lint", text("/lint?a=b", fields: "X-A: b\r\n")
    assert_equal "lint", text("/lint", verb: "POST", body: "abc")
  end

  # --- the request's body

  def test_a_body_comes_back
    assert_equal "there and back", text("/echo", body: "there and back")
    assert_equal "", text("/echo")
  end

  def test_a_chunked_body_comes_back
    chunks = "6\r\nthere \r\n8\r\nand back\r\n0\r\n\r\n"
    fields = "Connection: close\r\nTransfer-Encoding: chunked\r\n"
    socket = request("/echo", verb: "POST", fields: fields, close: false)
    socket.write(chunks)

    assert_equal "there and back", body_of(HTTPSupport::Answer.new(all_of(socket)))
  end

  def test_each_way_to_read
    body = "line\n12345678one\ntwo"
    assert_equal ["line\n", "1234", "567", %W[8one\n two], "", nil, nil, ""], json("/input", body: body)
    assert_equal [nil, nil, "", [], "", nil, nil, ""], json("/input")
  end

  def test_large_bodies
    [19_999, 20_001, 1_000_000].each do |size|
      body = SecureRandom.bytes(size)
      assert_equal [size, Digest::SHA1.hexdigest(body)], json("/size", verb: "POST", body: body)
    end
  end

  # --- statuses and fields

  def test_statuses
    statuses = [200, 201, 204, 302, 304, 404, 422, 500, 503, 599]
    assert_equal(statuses, statuses.map { |status| ask("/status?#{status}").status })
  end

  def test_fields_of_answers
    fields = { "content-type" => "text/plain", "x-one" => "1", "x-many" => %w[a b c], "rack.secret" => "x" }
    answer = ask("/fields", body: JSON.generate(fields))

    assert_equal(["text/plain", "1", %w[a b c], nil],
                 %w[content-type x-one x-many rack.secret].map { |name| answer[name] })
  end

  def test_a_frozen_answer
    answer = ask("/frozen")
    assert_equal %w[yes ab], [answer["x-frozen"], body_of(answer)]
  end

  def test_cookies
    assert_equal "a=1", ask("/cookies", body: '{"a":1}')["set-cookie"]
    assert_equal %w[a=1 b=2], ask("/cookies", body: '{"a":1,"b":2}')["set-cookie"]
  end

  # --- bodies of answers

  def test_a_body_that_is_the_application
    assert_equal "it is me", text("/itself")
  end

  def test_a_body_of_known_size
    answer = ask("/sized")
    assert_equal %w[5 five!], [answer["content-length"], answer.body]
  end

  def test_a_body_that_is_a_file
    assert_equal File.read(path_of("config.ru")), text("/path")
  end

  def test_a_body_without_pieces
    assert_equal "", text("/nothing?#{name = fresh("closed")}")
    assert_equal %w[closed], notes(name)
  end

  def test_each_piece_is_a_chunk
    assert_equal [*NUMBERS, ""], ask("/enumerator").chunks
  end

  def test_http_1_0_knows_no_chunks
    answer = ask("/enumerator", version: "1.0", close: false)

    assert_nil answer["transfer-encoding"]
    assert_equal NUMBERS.join, answer.body
  end

  %w[lazy lazy/stream].each do |path|
    define_method("test_a_piece_is_sent_before_there_is_another_#{path.tr("/", "_")}") do
      go = fresh("go")
      socket = request("/#{path}?#{go}")
      bytes = +""
      bytes << socket.readpartial(1000) until bytes.include?("first ") || !wait_readable(socket)
      refute_includes bytes, "second"
      server.write(go, "")

      assert_equal ["first ", "second", ""], HTTPSupport::Answer.new(bytes + all_of(socket)).chunks
    end
  end

  def test_a_body_that_is_called
    assert_equal "you said: hello", text("/stream", body: "hello")
    assert_equal "you said: ", text("/stream")
  end

  def test_a_body_is_closed_though_it_is_not_asked_for
    answer = ask("/closed?#{name = fresh("closed")}", verb: "HEAD")

    assert_equal [200, ""], [answer.status, answer.body]
    assert_equal %w[closed], notes(name)
  end

  def test_a_body_is_closed_once
    assert_equal "some", text("/closed?#{name = fresh("closed")}")
    2.times { text("/frozen") } # if it were closed again, then by now
    assert_equal %w[closed], notes(name)
  end

  def test_callbacks_when_the_answer_is_out
    assert_equal 201, ask("/finished?#{name = fresh("finished")}").status
    assert_equal ["last true 201 b nil", "first true 201 b nil"], notes(name, 2)
  end

  # --- errors

  def test_an_error
    answer = ask("/raise")

    assert_equal 500, answer.status
    refute_includes answer.body, "on purpose"
    assert_equal "it is me", text("/itself")
  end

  def test_an_error_behind_the_beginning
    name = fresh("closed")
    bytes = begin
      all_of(request("/raise/in/body?#{name}"))
    rescue Errno::ECONNRESET
      ""
    end

    refute bytes.end_with?("0\r\n\r\n"), "the answer looks complete"
    assert_equal %w[closed], notes(name)
    assert_equal "it is me", text("/itself")
  end

  # --- hijack, upgrades, hints

  def test_hijack
    assert_equal "partial", text("/partial")
    assert_equal "all mine", text("/full")
  end

  %w[field body full].each do |how|
    define_method("test_a_websocket_by_#{how}") do
      socket = request("/websocket/#{how}", close: false, fields: HANDSHAKE)
      wait_readable(socket)
      head = HTTPSupport::Answer.new(socket.gets("\r\n\r\n"))
      assert_equal([101, "websocket", "upgrade", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="],
                   [head.status, head["upgrade"], head["connection"].downcase, head["sec-websocket-accept"]])
      %w[some words back].each { |word| assert_equal frame(1, word), converse(socket, frame(1, word, mask: true)) }

      assert_equal frame(8, ""), converse(socket, frame(8, "", mask: true))
      assert_equal "", all_of(socket)
    end
  end

  # RFC 6455 section 1.3, with its example of a key and what must be made of it.
  HANDSHAKE = "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" \
              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

  # RFC 6455 section 5.2, of less than 126 bytes
  def frame(code, text, mask: false)
    return [0x80 | code, text.bytesize].pack("CC") + text unless mask

    key = SecureRandom.bytes(4)
    masked = text.bytes.each_with_index.map { |byte, index| byte ^ key.getbyte(index % 4) }
    [0x80 | code, 0x80 | text.bytesize].pack("CC") + key + masked.pack("C*")
  end

  def converse(socket, frame)
    socket.write(frame)
    wait_readable(socket)
    socket.readpartial(200)
  end

  def test_early_hints
    hints, answer = all_of(request("/hints")).split("\r\n\r\n", 2)

    assert_equal "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload", hints
    assert_equal "hinted", body_of(HTTPSupport::Answer.new(answer))
  end
end

# Connections belong to the reactor.
class RackAppReactorTest < Minitest::Test
  def self.reactor = true
  include RackAppConformance

  # The connection ends with a partial hijack.
  def test_one_after_another_on_a_connection
    requests = %w[/itself /sized /enumerator /path /nothing /stream /status?204 /lint /frozen /partial]
    socket = server.connect
    (@clients = [socket]) && requests.each { |path| socket.write("GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n") }
    socket.shutdown(:WR)
    answers = all_of(socket).split(%r{(?=HTTP/1\.1 \d{3} )}).map { |bytes| HTTPSupport::Answer.new(bytes) }

    assert_equal [*[200] * 6, 204, *[200] * 3], answers.map(&:status)
    assert_equal(["it is me", "five!", NUMBERS.join, File.read(path_of("config.ru")), "", "you said: ", "", "lint",
                  "ab", "partial"], answers.map { |answer| body_of(answer) })
  end
end

# Each worker has connections of its own.
class RackAppDirectTest < Minitest::Test
  def self.reactor = false
  include RackAppConformance
end
