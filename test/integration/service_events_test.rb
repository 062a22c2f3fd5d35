# frozen_string_literal: true

require "test_helper"
require "json"
require "support/servers"

# Promise: a service receives the monitor's events, each once and in order, also those that come while it is replaced.
class ServiceEventsTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  APP = <<~RUBY
    run lambda { |env|
      sleep if env["PATH_INFO"] == "/held"
      [200, {}, ["hi"]]
    }
  RUBY
  # Writes each event that it receives into a file, and then does what the test wants.
  CONFIG = <<~RUBY
    workers 2
    refork :manual
    log_format :json
    require "json"
    service(:telemetry) do |service|
      Thread.new { (sleep 0.01 while service.notes.event_number.zero?) || File.write("following", "") }
      service.each_event(*NAMES) do |event|
        File.write("seen", JSON.generate({ event: event.name, time: event.time.to_f.round(3), late: Time.now - event.time,
                                           **event.payload }) + "\\n", mode: "a")
        AFTER
      end
    end
  RUBY
  # Those of services and of this test's own trouble are not the same for a successor.
  NAMES = %w[worker. generation. refork. mold.].freeze

  # Also the process that was killed tells nothing any more.
  def test_a_killed_worker_is_reported_with_its_request_at_once
    start
    client = Thread.new { @server.request("POST", "/held?secret") }
    @server.wait_until_busy(1)
    busy = @server.workers.find { |worker| worker.title.end_with?("busy") }.pid
    Process.kill(:KILL, busy)
    client.join
    wait_until { seen("worker.lost").any? }

    lost = seen("worker.lost").first
    assert_equal(["POST /held", busy], lost.values_at("request", "pid"))
    assert_operator(lost["late"], :<, 5)
  end

  # The service itself moves to the new generation, and a worker dies meanwhile.
  def test_nothing_is_missing_and_nothing_comes_twice_over_reforks
    start
    3.times do
      @server.refork
      Process.kill(:KILL, @server.workers.first.pid)
      @server.wait_past("service.ready", generation: @server.events("generation.current").last["generation"])
    end
    @server.wait_for("worker.lost") { Process.kill(:KILL, @server.workers.last.pid) }

    assert_the_same_as_in_the_log
    assert_operator(@server.events("service.ready").size, :>=, 4)
  end

  def test_the_upgrade_of_the_monitor
    start
    @server.wait_for("monitor.upgraded") { assert(pando("upgrade")) }
    @server.wait_for("worker.lost") { Process.kill(:KILL, @server.workers.first.pid) }
    @server.refork

    assert_the_same_as_in_the_log
  end

  def test_an_event_at_which_it_was_killed_comes_again
    start(after: 'Process.kill(:KILL, Process.pid) if event.name == "worker.lost" && File.readlines("seen").size < 3',
          names: %w[worker.lost])
    Process.kill(:KILL, pid = @server.workers.first.pid)
    wait_until { seen("worker.lost").size == 3 }

    assert_equal([pid] * 3, seen("worker.lost").map { |event| event["pid"] })
    @server.wait_for("worker.lost") { Process.kill(:KILL, @server.workers.last.pid) }
    wait_until { seen("worker.lost").size == 4 }
    assert_equal(@server.events("worker.lost").last["pid"], seen("worker.lost").last["pid"])
  end

  def test_an_event_whose_block_raises_does_not_come_again
    start(after: 'raise "no good" if event[:slot] == 0', names: %w[worker.lost])
    2.times do |slot|
      worker = @server.workers.find { |one| one.title.match?(/worker #{slot} /) }
      @server.wait_for("worker.lost") { Process.kill(:KILL, worker.pid) }
    end
    wait_until { seen("worker.lost").size == 2 }

    assert_equal([0, 1], seen("worker.lost").map { |event| event["slot"] })
    assert_match(/no good/, @server.wait_past("service.lost")["reason"])
  end

  private

  def start(names: NAMES, after: "")
    config = CONFIG.sub("NAMES", names.inspect).sub("AFTER", after)
    @server = serve(app: APP, config: config)
    @server.wait_past("service.ready")
    wait_until { File.exist?(File.join(@server.folder, "following")) }
    @before = logged.size
  end

  def pando(*words) = system(*Support::Checkout.pando(*words, "-C", @server.folder), %i[out err] => File::NULL)

  def seen(name = nil)
    lines = File.readlines(File.join(@server.folder, "seen")).map { |line| JSON.parse(line) }
    lines.select { |event| name.nil? || event["event"] == name }
  rescue Errno::ENOENT
    []
  end

  # From the first event that it has received.
  def assert_the_same_as_in_the_log
    wait_until(message: -> { difference(seen.map { |event| key(event) }) }, timeout: 20) do
      keys = seen.map { |event| key(event) }
      keys.any? && logged.last(keys.size) == keys && logged.size - keys.size <= @before
    end
  end

  def difference(keys)
    "not seen: #{logged.drop(@before) - keys}; seen twice: #{keys.tally.select { |_, count| count > 1 }.keys}"
  end

  def logged
    @server.events.select { |event| event["event"].start_with?(*NAMES) }.map { |event| key(event) }
  end

  def key(event) = event.values_at("event", "slot", "generation", "pid")
end
