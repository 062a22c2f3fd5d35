# frozen_string_literal: true

require "test_helper"
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

  def test_an_error_costs_its_own_request
    serve(->(env) { env["PATH_INFO"] == "/bad" ? raise("broken") : [200, {}, ["fine"]] })

    assert_equal "500", get("/bad").code
    assert_equal "fine", get("/").body
  end

  private

  def serve(app)
    server = Pando::HTTP::ThreadServer.new(app, "127.0.0.1", @port)
    @thread = Thread.new { server.run }
  end

  def get(path) = Net::HTTP.get_response(URI("http://127.0.0.1:#{@port}#{path}"))
end
