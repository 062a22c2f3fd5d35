# frozen_string_literal: true

require "test_helper"
require "support/servers"
require "time"

# Promise: a service of the config lives as long as the server does, in one process at a time, forked from the
# newest mold.
class ServicesTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  # A line in the file "ticks" when it starts and when it is told to stop.
  TICKER = <<~'RUBY'
    service(:ticker) do |service|
      note = ->(text) { File.write("ticks", "#{text} #{Process.pid}\n", mode: "a") }
      note.call("started")
      nil until service.wait(0.05)
      sleep 0.2 # it is given the time to tidy up
      note.call("stopped #{service.wait(1)}")
    end
  RUBY

  def test_is_forked_from_the_mold_and_told_to_stop_at_the_end
    server = start
    pid = ready(server)
    wait_until(message: "its start") { File.exist?(ticks(server)) }

    assert(wait_until { server.tree.titled("service").map(&:title) == ["pando service ticker gen 0"] })
    File.open(ticks(server)) do |file| # the folder goes with the server
      assert_predicate(server.stop, :success?, server.output)
      assert_equal(["started #{pid}\n", "stopped true #{pid}\n"], file.readlines)
    end
    refute(alive?(pid))
  end

  def test_is_started_again_when_it_dies_and_later_each_time
    server = start
    ready(server)
    4.times do
      server.wait_for("service.ready", name: "ticker") do
        exited = server.wait_for("service.lost") { Process.kill("KILL", service_pid(server)) }
        assert_includes(exited["reason"], "signal KILL")
      end
    end
    died = server.events("service.lost").map { |event| Time.iso8601(event["time"]) }
    back = server.events("service.ready").drop(1).map { |event| Time.iso8601(event["time"]) }
    pauses = back.zip(died).map { |one, other| one - other }

    # At once, and then later each time.
    assert_operator(pauses[1], :>=, 0.2)
    assert_operator(pauses[2], :>=, 0.4)
    assert_operator(pauses[3], :>=, 0.9)
  end

  def test_one_that_raises_or_returns_is_started_again_and_the_server_serves
    server = serve(config: <<~RUBY)
      workers 1
      service(:broken) { raise "no good" }
      service(:short) { nil }
    RUBY
    broken = server.wait_past("service.lost", name: "broken")
    assert_equal("error", server.wait_past("restart.throttled", role: "service", name: "broken")["level"])
    server.wait_past("service.lost", name: "short")

    assert_includes(broken["reason"], "no good")
    assert_equal(200, server.get("/").status)
    assert_predicate(server.stop, :success?, server.output)
  end

  def test_moves_to_the_new_generation_without_living_twice
    server = start
    before = ready(server)
    server.refork
    moved = server.wait_past("service.ready", name: "ticker", generation: 1)
    wait_until(message: "its start") { notes(server).size == 3 }

    assert_equal(["started #{before}", "stopped true #{before}", "started #{moved["pid"]}"], notes(server))
    assert_equal([moved["pid"]], server.tree.titled("service").map(&:pid))
  end

  def test_does_not_live_twice_after_a_reload_that_adds_another_before_it
    server = start
    before = ready(server)
    wait_until(message: "its start") { File.exist?(ticks(server)) }
    server.write("pando.rb", <<~RUBY)
      log_format :json; rollout canary: false; workers 1; refork :manual
      service(:idler) { |service| service.wait(60) }
      #{TICKER}
    RUBY
    server.wait_for("reload.finished") { server.signal("HUP") }
    server.wait_past("service.ready", name: "idler")
    wait_until(message: "its start") { notes(server).size == 3 }
    after = server.wait_past("service.ready", name: "ticker", generation: 1)["pid"]

    assert_equal(["started #{before}", "stopped true #{before}", "started #{after}"], notes(server))
    assert_equal([["ticker", before]], server.events("service.exited").map { |event| event.values_at("name", "pid") })
  end

  def test_one_that_does_not_stop_is_killed_at_the_end
    server = serve(config: <<~RUBY)
      workers 1
      stop_timeout 0.5
      service(:stubborn) { loop { sleep rescue nil } }
    RUBY
    pid = ready(server, "stubborn")

    assert_predicate(server.stop, :success?, server.output)
    refute(alive?(pid))
  end

  def test_ends_with_the_monitor
    server = start
    pid = ready(server)
    Process.kill("KILL", server.pid)
    wait_until(message: "the service's end") { !alive?(pid) }

    assert_equal("stopped true #{pid}", notes(server).last)
    wait_until(message: "everybody's end: #{server.processes}") { server.processes.empty? }
  end

  private

  def start = serve(config: "workers 1\nrefork :manual\n#{TICKER}")
  def ready(server, name = "ticker") = server.wait_past("service.ready", name: name)["pid"]
  def service_pid(server) = server.events("service.ready").last["pid"]
  def ticks(server) = File.join(server.folder, "ticks")
  def notes(server) = File.readlines(ticks(server), chomp: true)

  def alive?(pid)
    !File.read("/proc/#{pid}/stat")[/\) (\w)/, 1].match?(/[ZX]/)
  rescue Errno::ENOENT, Errno::ESRCH
    false
  end
end
