# frozen_string_literal: true

require "test_helper"
require "support/servers"

# Promise: what the application runs after its response has a deadline of its own. It costs neither the response, nor
# the other requests of the worker, and holds up no replacement of the worker.
class LateCallbacksTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  APP = <<~RUBY
    HANG = lambda do
      File.write("begun", "")
      sleep
    ensure
      File.write("interrupted", Process.pid.to_s)
    end
    DEAF = lambda do
      File.write("begun", "")
      Thread.handle_interrupt(Object => :never) { sleep }
    end
    RESCUING = lambda do
      HANG.call
    rescue Exception
      nil
    end
    STREAMED = Class.new { def each = yield(Process.pid.to_s) }.new

    run lambda { |env|
      callbacks = env["rack.response_finished"]
      case env["PATH_INFO"]
      when "/callback" then callbacks << ->(*) { File.write("next", "") } << ->(*) { HANG.call }
      when "/rescuing" then callbacks << ->(*) { RESCUING.call }
      when "/deaf" then callbacks << ->(*) { DEAF.call }
      when "/moved"
        callbacks << lambda do |*|
          env["pando.timeout"].extend_by(100)
          sleep(1.2)
          File.write("moved", "")
        end
      when "/hook" then env["hang"] = true
      when "/streamed"
        callbacks << ->(*) { HANG.call }
        next [200, {}, STREAMED]
      when "/held"
        env["pando.timeout"].disable!
        File.write("held", "")
        hold_until("go")
      end
      [200, {}, [Process.pid.to_s]]
    }
  RUBY
  CONFIG = <<~RUBY
    workers 1
    refork :manual
    rollout canary: false
    after_request_complete { |_, _, env| HANG.call if env["hang"] }
    after_worker_timeout { |_, _, error| File.write("hook", error.class.name) }
  RUBY

  %w[/callback /rescuing /hook /streamed].each do |path|
    define_method(:"test_#{path.delete("/")}_is_interrupted_and_named_and_its_neighbour_finishes") do
      start("threads 2\ntimeout 0.5, grace: 60")
      neighbour = Thread.new { @server.get("/held") }
      await("held")
      response, event = late(path)

      assert_equal(200, response.status)
      worker = response.body[/\d{2,}/]
      assert_equal(worker, read("interrupted"))
      assert_equal([worker.to_i, "GET", path], event.values_at("pid", "method", "path"))
      assert_match(/after its response/, event["error"]["message"])
      assert(event["error"]["backtrace"].grep(/config\.ru:\d+/).any?, event["error"])
      assert_neighbour_and_replacement(neighbour, worker.to_i)
      assert_empty(@server.events("request.failed") + @server.events("worker.lost"))
    end
  end

  def test_the_other_callbacks_run
    start("timeout 0.5, grace: 60")
    late("/callback")

    assert(File.exist?(file("next")))
  end

  def test_a_callback_in_direct_mode
    start("reactor false\ntimeout 0.5, grace: 60")
    response, event = late("/callback")

    assert_equal([200, response.body], [response.status, read("interrupted")])
    assert_equal("/callback", event["path"])
    assert_equal("timeout", @server.wait_past("worker.leaving", pid: event["pid"])["reason"])
  end

  def test_a_callback_can_move_its_deadline
    start("timeout 0.5, grace: 60")
    pid = @server.get("/moved").body
    await("moved")

    assert_equal([pid], Array.new(3) { @server.get("/").body }.uniq)
    assert_empty(@server.complaints)
  end

  def test_a_callback_that_puts_interrupts_off_holds_up_a_reload_only_until_its_kill
    assert_ended_by_a_reload("/deaf", "timeout 1, grace: 0.5\nstop_timeout 60")
    assert_equal("GET /deaf", @server.wait_past("request.killed")["request"])
  end

  def test_a_callback_without_a_deadline_holds_up_a_reload_only_for_stop_timeout
    assert_ended_by_a_reload("/deaf", "timeout false\nstop_timeout 1")
    assert_ended_by_a_reload("/deaf", "timeout false\nstop_timeout 1\nthreads 2")
  end

  private

  def start(settings)
    @server = serve(app: APP, config: "#{settings}\n#{CONFIG}")
  end

  def late(path)
    response = nil
    event = @server.wait_for("request.timed_out") { response = @server.get(path) }
    [response, event]
  end

  def file(name) = File.join(@server.folder, name)
  def read(name) = File.read(file(name))
  def await(name) = wait_until(message: name) { File.exist?(file(name)) }

  def assert_neighbour_and_replacement(neighbour, worker)
    assert_equal("timeout", @server.wait_past("worker.leaving", pid: worker)["reason"])
    assert_equal("Pando::RequestTimeout", read("hook"))
    @server.write("go", "")

    assert_equal([200, worker.to_s], [neighbour.value.status, neighbour.value.body])
    @server.wait_past("worker.exited", pid: worker)
    refute_equal(worker.to_s, @server.get("/").body)
  end

  def assert_ended_by_a_reload(path, settings)
    start(settings)
    worker = @server.get(path).body.to_i
    await("begun")
    @server.wait_for("reload.finished") { @server.signal("HUP") }
    @server.wait_past("worker.killed", pid: worker)

    refute_equal(worker.to_s, @server.get("/").body)
  end
end
