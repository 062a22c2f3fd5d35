# frozen_string_literal: true

require "test_helper"
require "json"
require "support/servers"

# Promise: each hook runs in the process that the docs name, with the arguments that they name; what it raises
# is told with the hook's name and line, and the cluster serves on.
class HooksTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  # Each call of a hook becomes a line in the file "hooks": name, pid, role of the process, what it was given.
  RECORDER = <<~'RUBY'
    require "json"

    SHOW = lambda { |argument|
      case argument
      when Pando::Server then "server"
      when Exception then argument.class.name
      when Hash then argument["PATH_INFO"]
      else argument.respond_to?(:pid) ? [argument.role, argument.slot, argument.generation, argument.pid] : argument.to_s
      end
    }
    RECORD = lambda { |hook, *arguments|
      line = { hook: hook, pid: Process.pid, role: arguments.first.role&.role, arguments: arguments.map(&SHOW) }
      File.write("hooks", JSON.generate(line) + "\n", mode: "a")
    }
    [:before_fork, :after_mold_fork, :after_worker_fork, :after_worker_ready, :after_worker_timeout,
     :after_worker_hard_timeout, :before_worker_exit, :after_worker_exit, :after_request_complete,
     :after_monitor_ready].each { |name| send(name) { |*arguments| RECORD.call(name, *arguments) } }
  RUBY

  APP = <<~'RUBY'
    run lambda { |env|
      sleep if env["PATH_INFO"] == "/soft"
      Thread.handle_interrupt(Object => :never) { sleep } if env["PATH_INFO"] == "/hard"
      [200, {}, ["pid #{Process.pid}"]]
    }
  RUBY

  def test_each_runs_in_its_process_with_its_arguments
    server = serve(app: APP, config: "workers 1\ntimeout 1, grace: 3\nrefork :manual\n#{RECORDER}")
    mold = server.mold.pid
    first = ready_pid(server)
    server.get("/page")
    server.refork
    server.wait_past("worker.exited", pid: first)
    second = ready_pid(server)
    server.get("/soft")
    server.wait_past("worker.exited", pid: second)
    third = ready_pid(server, after: second)
    hang(server, "/hard")
    server.wait_past("worker.killed", pid: third)
    ready_pid(server, after: third)
    calls = stop_and_read(server)

    assert_equal([call("after_monitor_ready", server.pid, nil)], calls_of(calls, "after_monitor_ready"))
    assert_life_of_first(calls, mold, first)
    assert_promotion(calls, first)
    assert_timeouts(calls, second, third, server.pid)
    assert_equal([first, second], calls_of(calls, "before_worker_exit").map { |one| one["pid"] }.first(2))
    assert_exits(calls, [[first, "status 0"], [second, "status 0"], [third, "signal KILL"]], server.pid)
  end

  %w[after_worker_fork after_worker_ready before_worker_exit after_worker_timeout after_request_complete].each do |hook|
    define_method("test_#{hook}_that_raises_costs_its_worker_and_is_named") do
      server = serve(app: APP, config: <<~RUBY)
        workers 2
        timeout 1, grace: 20
        refork :manual
        #{hook} { |server, worker| raise "no good" if worker.slot == 0 && File.exist?("raise") }
        reactor false # which would give all requests, one after the other, to the same worker
      RUBY
      old = slot_zero(server)
      raising = server.write("raise", "")
      event = provoke(hook, server, old)
      File.unlink(raising)

      assert_equal(0, event["slot"])
      assert_named(event, hook, 4, server)
      assert_healed(server, old)
    end
  end

  %w[after_worker_exit after_worker_hard_timeout].each do |hook|
    define_method("test_#{hook}_that_raises_is_named_and_the_monitor_goes_on") do
      server = serve(app: APP, config: <<~RUBY)
        workers 2
        timeout 0.5, grace: 0.5
        refork :manual
        #{hook} { |server, worker| raise "no good" }
      RUBY
      event = server.wait_for("hook.failed") { hang(server, "/hard") }

      assert_equal(hook, event["hook"])
      assert_named(event, hook, 4, server)
      server.wait_past("worker.killed")
      assert_healed(server, server.events("worker.killed").last["pid"])
    end
  end

  def test_after_monitor_ready_that_raises_is_named_and_the_monitor_goes_on
    server = serve(config: "workers 1\nafter_monitor_ready { raise 'no good' }")

    assert_named(server.wait_past("hook.failed"), "after_monitor_ready", 2, server)
    assert_equal(200, server.get("/").status)
  end

  %w[before_fork after_mold_fork].each do |hook|
    define_method("test_#{hook}_that_raises_costs_the_refork_and_is_named") do
      server = serve(config: <<~RUBY)
        workers 2
        refork :manual
        #{hook} { |server| raise "no good" if File.exist?("raise") }
      RUBY
      raising = server.write("raise", "")
      event = server.wait_for("generation.discarded", generation: 1) { server.signal("USR2") }
      assert_equal(200, server.get("/").status)
      File.unlink(raising)

      assert_named(event, hook, 3, server)
      server.refork # by another worker, once the wait is over
      assert_equal(200, server.get("/").status)
    end
  end

  private

  def call(hook, pid, role, *arguments)
    { "hook" => hook, "pid" => pid, "role" => role, "arguments" => ["server", *arguments] }
  end

  def calls_of(calls, hook) = calls.select { |one| one["hook"] == hook }

  # From the last worker.ready on, waiting for a new one if need be.
  def ready_pid(server, after: nil)
    wait_until(message: "a new worker") do
      pid = server.events("worker.ready").last["pid"]
      pid unless pid == after
    end
  end

  def slot_zero(server) = server.events("worker.ready").reverse.find { |event| event["slot"].zero? }["pid"]

  def hang(server, path)
    server.connect.tap { |socket| socket.write("GET #{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n") }
  end

  def stop_and_read(server)
    File.open(File.join(server.folder, "hooks")) do |file| # the folder goes with the server
      assert_predicate(server.stop, :success?)
      file.each_line.map { |line| JSON.parse(line) }
    end
  end

  def assert_life_of_first(calls, mold, first)
    worker = ["worker", 0, 0, first]
    assert_equal(call("after_mold_fork", mold, "mold", ["mold", 0, 0, mold]), calls_of(calls, "after_mold_fork").first)
    assert_equal(call("before_fork", mold, "mold"), calls_of(calls, "before_fork").first)
    %w[after_worker_fork after_worker_ready].each do |hook|
      assert_equal([call(hook, first, "worker", worker)], calls_of(calls, hook).select { |one| one["pid"] == first })
    end
    assert_equal(call("after_request_complete", first, "worker", worker, "/page"),
                 calls_of(calls, "after_request_complete").first)
    assert_equal(call("before_worker_exit", first, "worker", worker), calls_of(calls, "before_worker_exit").first)
  end

  def assert_promotion(calls, source)
    promoted = calls_of(calls, "after_mold_fork")[1]
    assert_equal(call("after_mold_fork", promoted["pid"], "mold", ["mold", 0, 1, promoted["pid"]]), promoted)
    assert_includes(calls, call("before_fork", source, "worker"))
    assert_includes(calls, call("before_fork", promoted["pid"], "mold"))
  end

  def assert_timeouts(calls, soft, hard, monitor)
    assert_equal([call("after_worker_timeout", soft, "worker", ["worker", 0, 1, soft], "Pando::RequestTimeout")],
                 calls_of(calls, "after_worker_timeout"))
    assert_equal([call("after_worker_hard_timeout", monitor, nil, ["worker", 0, 1, hard])],
                 calls_of(calls, "after_worker_hard_timeout"))
  end

  def assert_exits(calls, expected, monitor)
    exits = calls_of(calls, "after_worker_exit")
    assert_equal([monitor], exits.map { |one| one["pid"] }.uniq)
    assert_equal(expected, exits.map { |one| [one["arguments"][1].last, one["arguments"][2]] }.first(3))
  end

  # Makes the hook run in the worker of slot 0, or in its successor.
  #
  # @return [Hash] the event that tells of its end
  def provoke(hook, server, pid)
    case hook
    when "before_worker_exit" then Process.kill("TERM", pid)
    when "after_worker_timeout" then 2.times { hang(server, "/soft") } # one for each of the two
    when "after_worker_fork", "after_worker_ready" then Process.kill("KILL", pid)
    end
    wait_until(message: "the end of slot 0; #{server.output}") do
      server.get("/") if hook == "after_request_complete"
      server.events.find { |event| event["event"].match?(/\Aworker\.(failed|lost)/) && event["reason"].include?(hook) }
    end
  end

  def assert_named(event, hook, line, server)
    assert_match(/#{hook} hook at .*pando\.rb:#{line + 1} raised RuntimeError: no good/, event["reason"], server.output)
  end

  def assert_healed(server, old)
    wait_until(message: "two workers without #{old}: #{server.workers}") do
      pids = server.workers.reject(&:zombie?).map(&:pid)
      pids.size == 2 && !pids.include?(old)
    end
    assert_equal(200, server.get("/").status)
    assert_predicate(server.stop, :success?, server.output)
  end
end
