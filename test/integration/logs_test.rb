# frozen_string_literal: true

require "test_helper"
require "pando/events/catalogue"
require "support/servers"

# Promise: one event for each fact, as a line for a human or as JSON, and every one is in the catalogue.
class LogsTest < Minitest::Test
  include Support::Servers

  APP = <<~'RUBY'
    run lambda { |env|
      case env["PATH_INFO"]
      when "/raise" then raise ArgumentError, "no\ngood"
      when "/sleep" then sleep
      when "/unsafe" then Pando.no_longer_fork_safe!("a library with threads")
      end
      [200, {}, ["fine"]]
    }
  RUBY
  CONFIG = <<~RUBY
    reactor false
    workers 2
    refork :manual
    timeout 0.5, grace: 20
    service(:ticker) { |service| service.wait(60) }
  RUBY
  RESERVED = %w[time event level].freeze
  TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d/

  def test_json
    server = serve(app: APP, config: CONFIG)
    output = live(server)

    output.each_line { |line| assert_known(JSON.parse(line)) }
    assert_equal(output.lines.size, server.events.size)
    %w[request.failed request.timed_out request.refused worker.lost worker.unsafe refork.finished workers.scaled
       monitor.stopped].each { |name| assert_equal(name, server.events(name).first&.fetch("event"), name) }
    assert_equal("no\ngood", server.events("request.failed").first["error"]["message"])
  end

  def test_text
    server = serve(app: APP, config: CONFIG, arguments: ["--log-format", "text"], ready: false)
    wait_until(message: "the boot") { server.output.include?("generation.current") }
    output = live(server)

    assert_match(/^#{TIME} pando worker\.ready slot=1 generation=0 pid=\d+$/, output)
    assert_match(/^\S+ pando ERROR worker\.lost slot=\d generation=0 pid=\d+ reason="signal KILL"/, output)
    assert_match(%r{^\S+ pando ERROR request\.failed .*path=/raise .*error="ArgumentError: no\\ngood"$}, output)
    assert_match(/no\\ngood"\n    \S*config\.ru:3:in /, output)
    output.each_line { |line| assert_match(/\A(?:#{TIME} pando |    )\S/, line) }
  end

  def test_the_server_listens_before_the_application_is_loaded_and_is_ready_after
    app = "hold_until('go')\n#{APP}"
    server = serve(app: app, config: CONFIG, listen: "127.0.0.1:0", ready: false)
    listening = server.wait_past("monitor.listening")
    server.wait_past("mold.booting")
    assert_empty(server.events("server.ready"), "the application is not loaded yet")
    server.write("go", "")
    ready = server.wait_past("server.ready")

    assert_equal(%w[0 1], server.events("worker.ready").map { |event| event["slot"].to_s }.sort)
    assert_equal([server.pid, 2, "production", listening["listen"]],
                 ready.values_at("pid", "workers", "environment", "listen"))
    assert_equal("http://#{listening["listen"]}", ready["url"])
    assert_operator(ready["seconds"], :>, 0)
    server.wait_for("reload.finished") { server.signal("HUP") }
    assert_equal([1, 1], %w[monitor.listening server.ready].map { |name| server.events(name).size })
  end

  def test_subscribers_of_the_config_hear_the_events_of_their_process
    server = serve(app: APP, config: CONFIG + <<~'RUBY')
      on("worker.ready") { |event| File.write("heard", "#{Process.pid} #{event[:pid]}\n", mode: "a") }
      on("request.failed") { |event| File.write("failed", "#{Process.pid} #{event[:pid]} #{event[:error].class}") }
      on("request.failed") { raise "a subscriber's mistake" }
    RUBY
    assert_equal(500, server.get("/raise").status)
    assert_equal(200, server.get("/").status)

    workers = server.events("worker.ready").map { |event| "#{server.pid} #{event["pid"]}" }
    assert_equal(workers, File.readlines(File.join(server.folder, "heard"), chomp: true))
    pid = server.wait_past("request.failed")["pid"]
    assert_equal("#{pid} #{pid} ArgumentError", File.read(File.join(server.folder, "failed")))
  end

  private

  # A life with many events. Works without reading them.
  #
  # @return [String] all that was logged
  def live(server)
    { "/raise" => 500, "/sleep" => 504, "/unsafe" => 200 }.each do |path, status|
      assert_equal(status, server.get(path).status)
    end
    malformed(server)
    expect(server, /worker\.exited/) # the one that timed out
    expect(server, /worker\.lost/) { Process.kill("KILL", server.workers.first.pid) }
    expect(server, /refork\.finished/) { server.signal("USR2") } # refused while a worker is starting
    expect(server, /workers\.scaled/) { server.signal("TTIN") }
    assert_predicate(server.stop, :success?, server.output)
    server.output
  end

  def malformed(server)
    socket = server.connect
    socket.write("GET / HTTP/1.1\r\n\r\n")
    assert_match(/\AHTTP\S+ 400 /, socket.read)
  ensure
    socket&.close
  end

  # Waits for it in the output, doing what leads to it again and again.
  def expect(server, pattern)
    wait_until(message: -> { "#{pattern} in #{server.output}" }) do
      next true if server.output.match?(pattern)

      yield if block_given?
      wait_briefly { server.output.match?(pattern) }
    end
  end

  def wait_briefly(&condition)
    wait_until(timeout: 1, &condition)
  rescue Support::Waiting::TimedOut
    false
  end

  def assert_known(event)
    known = Pando::Events::Catalogue.all.find { |one| one.name == event["event"] }
    assert(known, "not in the catalogue: #{event}")
    assert_equal(known.level.name, event["level"])
    assert_empty(event.keys - RESERVED - known.keys.map(&:name), event.to_s)
    assert_match(/\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\z/, event["time"])
  end
end
