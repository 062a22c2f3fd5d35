# frozen_string_literal: true

require "test_helper"
require "pando/http/handler"
require "support/servers"

# The worker that is to fork the next mold is at a request, and another one waits for it already: the fork is first.
class BusySourceTest < Minitest::Test
  include Support::Servers

  # A request lasts until there is a file of its name, and longer than a worker goes on without a look at its orders.
  APP = <<~RUBY.freeze
    run ->(env) {
      sleep #{Pando::HTTP::Handler::BUDGET_SECONDS * 2}
      name = env["PATH_INFO"].delete("/")
      File.write("\#{name}.begun", "")
      hold_until(name) unless name.empty?
      [200, { "content-type" => "text/plain" }, [name]]
    }
  RUBY

  def test_behind_the_reactor = assert_forks_between(first_of_two)
  def test_in_direct_mode = assert_forks_between(first_of_two("reactor false"))

  def test_another_worker_is_asked_when_it_dies = assert_asks_another
  def test_another_worker_is_asked_when_it_dies_in_direct_mode = assert_asks_another("reactor false")

  private

  # @return [Array<Thread>] a request that has begun, and one that waits for the only worker
  def first_of_two(*settings)
    @server = start("workers 1", *settings)
    first = Thread.new { @server.get("/first").body }
    wait_until { File.exist?(File.join(@server.folder, "first.begun")) }
    second = @server.connect
    second.write("GET /second HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
    [first, Thread.new { second.read[/\w+\z/] }]
  end

  def start(*settings)
    serve(app: APP, config: ["refork :manual", "rollout canary: false", "control 'control.sock'", *settings].join("\n"))
  end

  # A later question to the monitor is answered when the order is out.
  def order_mold
    @server.wait_for("refork.started") { @server.signal("USR2") }
    UNIXSocket.open(File.join(@server.folder, "control.sock")) { |control| control.puts("status") || control.gets }
  end

  def assert_forks_between(clients)
    order_mold
    @server.wait_for("generation.ready") { @server.write("first", "") }

    refute_path_exists(File.join(@server.folder, "second"))
    @server.write("second", "")
    @server.wait_past("refork.finished")

    assert_equal(%w[first second], clients.map(&:value))
  end

  def assert_asks_another(*settings)
    @server = start("workers 2", *settings)
    clients = %w[first second].map { |name| begin_request(name) }
    started = @server.wait_for("refork.started") { @server.signal("USR2") }
    changed = @server.wait_for("source.changed") { Process.kill("KILL", started["source"]) }

    refute_equal(started["source"], changed["source"])
    assert_equal("the worker in slot #{started["slot"]} ended: signal KILL", changed["reason"])
    @server.wait_for("refork.finished") { %w[first second].each { |name| @server.write(name, "") } }
    assert_empty(@server.events("mold.failed") + @server.events("generation.discarded"))
    clients.each(&:close)
  end

  # @return [Socket] of the client, once a worker is at it
  def begin_request(name)
    client = @server.connect
    client.write("POST /#{name} HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    wait_until { File.exist?(File.join(@server.folder, "#{name}.begun")) }
    client
  end
end
