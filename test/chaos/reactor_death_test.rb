# frozen_string_literal: true

require "test_helper"
require "support/keep_alive_load"
require "support/servers"

# Promise: the reactor's death ends the connections that it holds, and nothing else.
class ReactorDeathTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  APP = <<~'RUBY'
    run lambda { |env|
      sleep env["QUERY_STRING"].to_f
      [200, { "content-type" => "text/plain" }, ["pid #{Process.pid}"]]
    }
  RUBY

  def setup
    @server = serve(app: APP, config: "workers 2\nrefork false")
    @workers = @server.workers.map(&:pid)
    @reactor = @server.wait_past("reactor.ready")["pid"]
  end

  def kill_reactor(pid = @reactor)
    @server.wait_for("reactor.ready") { Process.kill("KILL", pid) }["pid"]
  end

  def ask(target, connection = @server.connect)
    connection.tap { |socket| socket.write("GET #{target} HTTP/1.1\r\nHost: a\r\n\r\n") }
  end

  def test_another_serves_at_once_and_the_same_workers
    assert_equal 200, @server.get("/").status
    kept = ask("/")
    kept.readpartial(1000)
    successor = kill_reactor

    refute_equal @reactor, successor
    assert_equal "", kept.read
    assert_equal 200, @server.get("/").status
    assert_equal @workers, @server.workers.map(&:pid)
    lost = @server.wait_past("reactor.lost")
    assert_equal [@reactor, "signal KILL"], lost.values_at("pid", "reason")
  end

  def test_who_connects_meanwhile_is_served
    Process.kill("STOP", @reactor)
    waiting = Array.new(20) { ask("/") }
    kill_reactor

    assert(waiting.all? { |socket| socket.gets.start_with?("HTTP/1.1 200") })
  end

  def test_a_worker_that_answers_nobody_serves_on
    held = Array.new(2) { ask("/?1") }
    @server.wait_until_busy(2)
    kill_reactor

    assert_equal ["", ""], held.map(&:read)
    assert_equal 200, @server.get("/").status
    assert_equal @workers, @server.workers.map(&:pid)
  end

  def test_again_and_again_under_load
    load = Support::KeepAliveLoad.start(@server.method(:connect), clients: 6)
    pid = @reactor
    10.times do
      load.wait_for_more(200)
      pid = kill_reactor(pid)
    end
    load.wait_for_more(200)
    load.stop

    assert_operator load.failures.size, :<=, 10 * 6
    assert(load.failures.all?(&:error), load.failures.inspect)
    assert_equal @workers, @server.workers.map(&:pid)
    assert_predicate @server.stop, :success?
  end

  def test_the_monitors_death_ends_the_reactor
    pids = @server.tree.children.map(&:pid)
    held = ask("/?1")
    @server.wait_until_busy(1)
    Process.kill("KILL", @server.pid)

    assert_match(/200 OK/, held.read)
    wait_until(message: "the end of all") { pids.none? { |pid| File.exist?("/proc/#{pid}/cwd") } }
  end
end
