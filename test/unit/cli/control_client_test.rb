# frozen_string_literal: true

require "test_helper"
require "socket"
require "tmpdir"
require "pando/cli/control_client"

# How the commands reach the monitor.
class ControlClientTest < Minitest::Test
  Client = Pando::CLI::ControlClient

  def setup
    @folder = Dir.mktmpdir("pando-client")
    @server = UNIXServer.new(@path = File.join(@folder, "control.sock"))
    @server.listen(0)
    @first = UNIXSocket.new(@path) # the queue is full
  end

  def teardown
    [@server, @first].each(&:close)
    FileUtils.rm_rf(@folder)
  end

  def test_a_monitor_whose_queue_stays_full_gives_no_answer
    error = assert_raises(Client::Silent) { Client.new(@path).ask("status", timeout: 0.1) }

    assert_equal "there was no answer within 0.1 s, and the command was not sent", error.message
  end

  def test_a_client_waits_for_its_place_in_the_queue
    client = Client.new(@path)
    tried = Queue.new
    client.define_singleton_method(:sleep) { |_| tried << true }
    asking = Thread.new { client.ask("status") }
    tried.pop
    @server.accept.close
    session = @server.accept

    assert_equal "status\n", session.gets
    session.puts("ok text=done")
    assert_equal ["ok", { "text" => "done" }], asking.value
  ensure
    session&.close
  end
end
