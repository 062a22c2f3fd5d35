# frozen_string_literal: true

require "test_helper"
require "support/keep_alive_load"
require "support/kept_connection"
require "support/servers"

# Promise: workers come and go behind the reactor, many of them or stuck ones, and the reactor itself may stand still
# for a while: no client loses anything but time.
class ReactorWorkersTest < Minitest::Test
  include Support::Servers

  # /held answers when the file "go" is there.
  APP = <<~'RUBY'
    run lambda { |env|
      hold_until("go") if env["PATH_INFO"] == "/held"
      body = env["PATH_INFO"] == "/large" ? "x" * 5_000_000 : "#{Process.pid}"
      [200, { "content-type" => "text/plain" }, [body]]
    }
  RUBY

  def teardown
    @load&.stop
    @connections&.each(&:close)
    super
  end

  def start(config, **options)
    @connections = []
    @server = serve(app: APP, config: "refork :manual\n#{config}", **options)
  end

  def ask(path)
    Support::KeptConnection.new(@server.connect).ask(path).tap { |connection| @connections << connection }
  end

  # There is one for all of the test, unless something went wrong.
  def reactor
    pid = @server.wait_past("reactor.ready")["pid"]
    assert_equal 1, @server.events("reactor.ready").size
    pid
  end

  def assert_no_complaints
    assert_empty(@server.complaints)
  end

  # It wakes up late, and with EINTR: what its clients have sent meanwhile counts.
  def test_who_was_in_time_when_it_stood_still
    start("workers 1\nbody_timeout 1")
    client = ask("/").tap(&:answer)
    client.ask("/", verb: "POST", fields: "Content-Length: 8003\r\n", body: "x" * 8000) # worth eight seconds
    wait_until { asleep?(reactor) }
    Process.kill("STOP", reactor)
    client.socket.write("def")

    assert_nil client.socket.wait_readable(2)
    Process.kill("CONT", reactor)
    assert_equal 200, client.answer.status
  end

  def asleep?(pid) = File.read("/proc/#{pid}/stat")[/\) (\w)/, 1] == "S"

  def test_new_workers_while_it_has_no_descriptor_left
    start("workers 2")
    kept = ask("/")
    before = kept.answer.body
    allow_descriptors(0)
    @server.refork
    after = kept.ask("/").answer.body

    refute_equal before, after
    assert_includes @server.workers.map { |worker| worker.pid.to_s }, after
    assert reactor
  end

  # So many more than the reactor has.
  def allow_descriptors(count)
    used = Dir.children("/proc/#{reactor}/fd").map(&:to_i)
    limit = ((0..(used.size + count)).to_a - used)[count]
    assert system("prlimit", "--pid=#{reactor}", "--nofile=#{limit}:")
  end

  def test_more_workers_and_fewer_under_load
    start("workers 2")
    @load = Support::KeepAliveLoad.start(@server.method(:connect), clients: 4)
    3.times do
      [2, 3].each { |slot| @server.wait_for("worker.ready", slot: slot) { @server.signal("TTIN") } }
      @load.wait_for_more(200)
      [3, 2].each { |slot| @server.wait_for("worker.exited", slot: slot) { @server.signal("TTOU") } }
      @load.wait_for_more(200)
    end
    @load.stop

    assert_empty @load.failures.map(&:to_a)
    assert_no_complaints
  end

  def test_a_new_worker_takes_what_waits
    start("workers 1")
    running = ask("/held")
    @server.wait_until_busy(1)
    waiting = ask("/")
    @server.signal("TTIN")

    assert_equal 200, waiting.answer.status
    assert_predicate running, :silent?
    @server.write("go", "")
    assert_equal 200, running.answer.status
  end

  def test_a_worker_too_many_finishes_its_request_and_the_connection_stays
    start("workers 2")
    running = Array.new(2) { ask("/held") }
    @server.wait_until_busy(2)
    waiting = ask("/")
    @server.wait_for("worker.leaving", slot: 1) { @server.signal("TTOU") }
    @server.write("go", "")
    @server.wait_past("worker.exited", slot: 1)
    all = [*running, waiting]

    assert(all.map(&:answer).all? { |answer| answer.status == 200 && !answer.last? })
    assert_equal [@server.workers.first.pid.to_s], all.map { |connection| connection.ask("/").answer.body }.uniq
  end

  def test_64_workers
    start("workers 64\nself_check timeout: 60", ready: false) # they are forked all at once
    64.times { |slot| @server.wait_past("worker.ready", slot: slot, patience: 120) }
    running = Array.new(64) { ask("/held") }
    @server.wait_until_busy(64)
    @server.write("go", "")

    assert_equal 64, running.map { |connection| connection.answer.body }.uniq.size
    assert_no_complaints
    assert_predicate @server.stop, :success?
  end

  STUCK = "after_worker_fork { |_, worker| sleep if worker.slot == 1 && !File.exist?('unstuck') }"

  def test_a_worker_that_is_stuck_in_its_start_holds_nobody_up
    start("workers 3\n#{STUCK}\nspawn_timeout 60\nrollout surge: 3", ready: false)
    @server.wait_past("worker.ready", slot: 0)
    50.times { assert_equal 200, ask("/").answer.status }

    assert_predicate @server.stop, :success?
  end

  def test_a_worker_that_is_stuck_in_its_start_is_replaced
    start("workers 2\n#{STUCK}\nspawn_timeout 1\nrollout surge: 2", ready: false)
    @server.wait_past("worker.ready", slot: 0)
    @load = Support::KeepAliveLoad.start(@server.method(:connect), clients: 2)
    @server.wait_past("worker.failed", slot: 1, reason: "it was not ready in time (spawn_timeout 1 s): signal KILL")
    @server.write("unstuck", "")
    @server.wait_past("worker.ready", slot: 1)
    @load.wait_for_more(100)
    @load.stop

    assert_empty @load.failures.map(&:to_a)
  end

  def test_a_reactor_that_stands_still_for_a_while
    start("workers 2")
    before = [reactor, *@server.workers.map(&:pid)]
    kept = ask("/").tap(&:answer)
    running = ask("/held")
    large = ask("/large")
    large.socket.readpartial(1000)
    @server.wait_until_busy(1)
    Process.kill("STOP", reactor)
    all = [running, kept.ask("/")] + Array.new(30) { ask("/") }
    @server.write("go", "")

    refute running.socket.wait_readable(3), "it answers while it is stopped"
    Process.kill("CONT", reactor)
    assert_equal([200], all.map { |connection| connection.answer.status }.uniq)
    assert_equal 4_999_000, large.socket.read(4_999_000).bytesize
    assert_equal before, [reactor, *@server.workers.map(&:pid)]
    assert_no_complaints
  end

  def test_a_stop_ends_a_reactor_that_stands_still
    start("workers 1\nstop_timeout 2")
    waiting = ask("/").tap(&:answer)
    Process.kill("STOP", reactor)
    @server.signal("TERM")

    assert_equal 0, @server.wait_for_exit(15).exitstatus
    assert_equal "", waiting.rest
  end
end
