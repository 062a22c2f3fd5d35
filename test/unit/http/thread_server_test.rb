# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "tmpdir"
require "net/http"
require "pando/http/thread_server"

class HTTPThreadServerTest < Minitest::Test
  def setup
    @port = free_port
  end

  def teardown
    @thread&.kill&.join
  end

  def test_it_serves_in_this_process
    serve(->(env) { [200, { "content-type" => "text/plain" }, ["#{env["PATH_INFO"]} by #{Process.pid}"]] })

    assert_equal "/page by #{Process.pid}", get("/page").body
  end

  # There is no worker, and so no hook.
  def test_an_application_that_raises_the_timeout_itself
    threads = Queue.new
    serve(lambda { |_env|
      threads << Thread.current
      raise Pando::RequestTimeout
    })

    assert_equal "504", get("/").code
    assert threads.pop.join
  end

  def test_requests_are_served_side_by_side
    inside = Queue.new
    go_on = Queue.new
    serve(->(_env) { [200, {}, [(inside << 1) && go_on.pop]] })
    clients = Array.new(3) { Thread.new { get("/").body } }
    3.times { inside.pop } # all are in the application
    3.times { |number| go_on << number.to_s }

    assert_equal %w[0 1 2], clients.map(&:value).sort
  end

  def test_a_body_arrives
    serve(->(env) { [200, {}, [env["rack.input"].read.reverse]] })

    assert_equal "cba", Net::HTTP.post(URI("http://127.0.0.1:#{@port}/"), "abc").body
  end

  # As ActionController::Live and send_data of a stream do it.
  def test_a_body_is_streamed
    go_on = Queue.new
    serve(->(_env) { [200, {}, Enumerator.new { |parts| parts << "first, " << go_on.pop }] })
    parts = []
    Net::HTTP.start("127.0.0.1", @port) do |client|
      client.request_get("/") do |answer|
        answer.read_body { |part| (parts << part) && (go_on << "second") }
      end
    end

    assert_equal "first, second", parts.join
  end

  def test_a_body_writes_itself
    serve(->(_env) { [200, {}, ->(stream) { stream.write("written") && stream.close }] })

    assert_equal "written", get("/").body
  end

  # As Action Cable does it.
  def test_a_connection_is_taken_over
    serve(lambda { |env|
      env["rack.hijack"].call
      Thread.new(env["rack.hijack_io"]) { |io| io.write("mine: #{io.gets}") && io.close }
      [-1, {}, []]
    })
    answer = TCPSocket.open("127.0.0.1", @port) do |client|
      client.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
      client.write("hello\n")
      client.read if client.wait_readable(10)
    end

    assert_equal "mine: hello\n", answer
  end

  def test_an_error_costs_its_own_request
    serve(->(env) { env["PATH_INFO"] == "/bad" ? raise("broken") : [200, {}, ["fine"]] })

    assert_equal "500", get("/bad").code
    assert_equal "fine", get("/").body
  end

  def test_a_newcomer_replaces_the_oldest_connection_without_a_request
    serve(->(_env) { [200, {}, ["fine"]] }, most: 2)
    silent = Array.new(2) { TCPSocket.new("127.0.0.1", @port).tap { |one| one.write("GET / HTT") } }

    assert_equal "fine", get("/").body
    wait_until { ended?(silent.first) }
    assert_nil ended?(silent.last)
  ensure
    silent&.each(&:close)
  end

  def test_requests_that_are_being_answered_are_not_replaced
    gate = Queue.new
    serve(->(env) { [200, {}, [env["PATH_INFO"] == "/slow" ? gate.pop : "fine"]] }, most: 1)
    slow = Thread.new { get("/slow").body }
    wait_until { gate.num_waiting == 1 }

    assert_raises(EOFError, Errno::ECONNRESET) { get("/") }
    gate << "done"
    assert_equal "done", slow.value
    assert_equal("fine", wait_until { get("/").body rescue nil }) # rubocop:disable Style/RescueModifier
  end

  def test_several_listeners_and_no_thread_is_left_behind
    path = File.join(Dir.mktmpdir, "s")
    serve(->(env) { [200, {}, [env["pando.listener"].class.name]] }, UNIXServer.new(path))
    Timeout.timeout(1) { nil } # its thread stays, and Net::HTTP would start it below
    before = Thread.list.size
    idle = TCPSocket.new("127.0.0.1", @port)

    assert_equal "TCPServer", get("/").body
    answer = UNIXSocket.open(path) { |one| one.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n") && one.read }
    assert_match(/UNIXServer\z/, answer)
    @thread.kill.join
    assert_operator Thread.list.size, :<, before
  ensure
    idle&.close
    FileUtils.rm_rf(File.dirname(path))
  end

  private

  # @return [true, nil] nil: it is open
  def ended?(socket)
    socket.read_nonblock(1, exception: false).nil? || nil
  rescue Errno::ECONNRESET
    true
  end

  def serve(app, *more, **options)
    server = Pando::HTTP::ThreadServer.new(app, [TCPServer.new("127.0.0.1", @port), *more], **options)
    @thread = Thread.new { server.run }
  end

  def get(path) = Net::HTTP.get_response(URI("http://127.0.0.1:#{@port}#{path}"))
end
