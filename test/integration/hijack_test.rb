# frozen_string_literal: true

require "test_helper"
require "support/servers"

# Connections that the application takes over, in the real server: how they live
# beside requests, and how they end with their worker.
class HijackTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  APP = <<~RUBY
    ECHO = ->(io) { Thread.new { while (line = io.gets) do io.write("\#{Process.pid} \#{line}") end and io.close } }
    run lambda { |env|
      case env["PATH_INFO"]
      when "/full" then ECHO.call(env["rack.hijack"].call)
                        [200, {}, []]
      when "/upgrade" then [101, { "upgrade" => "echo", "rack.hijack" => ECHO }, []]
      when "/up" then [200, {}, [env["rack.input"].readpartial(100), env["rack.input"].read]]
      when "/hints" then env["rack.early_hints"].call("link" => "x")
                         [200, {}, ["hinted"]]
      else [200, {}, ["pid=\#{Process.pid}"]]
      end
    }
  RUBY

  def teardown
    @clients&.each(&:close)
    super
  end

  def start(reactor)
    @clients = []
    settings = ["workers 2", "refork :manual", "reactor #{reactor}", "early_hints true", 'stream_bodies "/up"',
                "fork_safety threads: :allow"] # each belongs to its connection, which no child has either
    @server = serve(app: APP, config: settings.join("\n"))
  end

  def request(path, fields = "")
    @server.connect.tap do |client|
      @clients << client
      client.write("GET #{path} HTTP/1.1\r\nHost: a\r\n#{fields}\r\n")
    end
  end

  def line_of(client)
    client.wait_readable(90) || flunk("nothing comes")
    client.gets
  end

  # @return [Integer] of the worker that echoes
  def echo(client)
    client.write("hello\n")
    line_of(client)[/\A(\d+) hello\n\z/, 1].to_i
  end

  def upgrade
    request("/upgrade", "Connection: upgrade\r\nUpgrade: echo\r\n").tap do |client|
      assert_match(/ 101 /, line_of(client))
      nil until line_of(client) == "\r\n"
    end
  end

  { "behind_the_reactor" => true, "in_direct_mode" => false }.each do |mode, reactor|
    define_method("test_they_live_beside_requests_#{mode}") do
      start(reactor)
      clients = [request("/full"), upgrade, request("/full"), upgrade]
      pids = clients.map { |client| echo(client) }

      assert_empty pids - @server.workers.map(&:pid)
      10.times { assert_match(/\Apid=/, @server.get("/", "Connection" => "close").body) }
      again = clients.map { |client| echo(client) }

      assert_equal pids, again
    end

    define_method("test_they_end_with_their_worker_and_no_mold_keeps_them_#{mode}") do
      start(reactor)
      clients = Array.new(6) { |index| index.even? ? request("/full") : upgrade }
      clients.each { |client| echo(client) }
      @server.refork
      @server.refork

      clients.each { |client| assert_nil line_of(client), "somebody holds the connection" }
      assert_empty @server.events("finding.reported"), "children find the connections hung up"
      assert_match(/\Apid=/, @server.get("/", "Connection" => "close").body)
    end

    define_method("test_a_worker_that_is_killed_takes_them_along_#{mode}") do
      start(reactor)
      client = upgrade
      pid = echo(client)
      @server.wait_for("worker.lost", pid: pid) { Process.kill("KILL", pid) }

      assert_nil line_of(client)
    end

    define_method("test_the_server_stops_with_them_open_#{mode}") do
      start(reactor)
      clients = [request("/full"), upgrade].each { |client| echo(client) }

      assert_predicate @server.stop, :success?
      clients.each { |client| assert_nil line_of(client) }
    end

    define_method("test_a_streamed_body_#{mode}") do
      start(reactor)
      client = request("/up", "Content-Length: 6\r\nExpect: 100-continue\r\n")
      assert_match(/ 100 /, line_of(client))
      client.write("abc")
      client.write("def")

      assert_includes client.read, "abcdef"
    end

    define_method("test_early_hints_#{mode}") do
      start(reactor)

      assert_match(%r{\AHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 .*hinted\z}m,
                   request("/hints", "Connection: close\r\n").read)
    end
  end
end
