# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "support/servers"

# Promise: connections that live long belong to their worker. One that is replaced keeps them for the time of `drain`,
# while its successor takes new requests; then it closes what is left.
class LiveConnectionsTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  APP = <<~'RUBY'
    ECHO = lambda do |io|
      Thread.new { io.each_line { |line| GROW.call(line) and io.write("#{Process.pid} #{line}") } and io.close }
    end
    KEPT = []
    GROW = ->(line) { line != "grow\n" or KEPT << ("x" * 60 * 1024**2) }
    class Stream
      def each
        loop { yield "#{Process.pid}\n" and sleep 0.3 } # what a client has not read for long would be cut off
      ensure
        File.write("ended", "#{Process.pid}\n", mode: "a")
      end
    end
    run lambda { |env|
      case env["PATH_INFO"]
      when "/live/ws" then ECHO.call(env["rack.hijack"].call)
                           [200, {}, []]
      when "/live/stream" then [200, {}, Stream.new]
      else [200, {}, [Process.pid.to_s]]
      end
    }
  RUBY
  LIVE = 'pool :live, paths: ["/live"], workers: 1, threads: 4, refork: false'
  EXIT = <<~'RUBY'
    before_worker_exit { |_, worker| File.write("hooks", "#{worker.pid}\n", mode: "a") }
  RUBY

  def setup
    super
    @clients = []
  end

  def teardown
    @clients.each(&:close)
    super
  end

  def test_a_replaced_worker_keeps_its_connections_and_its_successor_takes_new_ones
    start("#{LIVE}, drain: 600")
    old = live_worker
    sockets = Array.new(3) { open("/live/ws") }
    stream = open("/live/stream")
    assert_equal([old], [*sockets.map { |one| echo(one) }, line_of(stream)].uniq)
    3.times { reload }
    fresh = open("/live/ws")

    assert_equal([old], [*sockets.map { |one| echo(one) }, line_of(stream)].uniq)
    assert_equal([live_worker], [echo(fresh), @server.get("/live").body].uniq)
    assert_equal({ "connections" => 3, "streams" => 1 }, process(old).slice("connections", "streams"))
    assert_includes(1..600, process(old)["drain_left"])
    wait_until(message: -> { pando("status") }) do # a worker counts its connections now and then
      pando("status").match?(/^live: .*5 live connections \(4 in leaving workers\)/)
    end
    assert_empty(@server.complaints)
    @server.wait_for("worker.exited", pid: Integer(old)) { [*sockets, stream].each(&:close) } # long before its time
  end

  # Each of them may soon have work for its worker.
  def test_workers_get_equally_many
    start(LIVE.sub("workers: 1", "workers: 2"))
    sockets = Array.new(8) { open_at_rest }
    one, other = sockets.group_by { |socket| echo(socket) }.values
    assert_equal([4, 4], [one&.size, other&.size])
    one.each(&:close)
    busier = echo(other.first)
    wait_until(message: -> { pando("status") }) { live_processes.any? { |process| process["connections"].nil? } }
    gained = Array.new(3) { echo(open_at_rest) }

    refute_includes(gained, busier)
  end

  # Two reloads, and workers that have nothing to keep do not stay.
  def test_a_worker_without_connections_leaves_at_once
    start("#{LIVE}, drain: 600")
    old = live_worker
    @server.wait_for("worker.exited", pid: Integer(old)) { reload }
  end

  def test_the_others_refork_as_if_they_did_not_exist
    start("refork :manual\n#{LIVE}, drain: 600")
    socket = open("/live/ws")
    pid = echo(socket)
    2.times { @server.wait_for("refork.finished", pool: "web") { pando("refork", "web") } }

    assert_equal(pid, echo(socket))
    assert_empty(@server.events("worker.leaving").select { |event| event["pool"] == "live" })
  end

  def test_when_the_time_is_up_what_is_left_is_closed
    start("#{LIVE}, drain: 1\n#{EXIT}")
    old = live_worker
    socket = open("/live/ws")
    stream = open("/live/stream")
    assert_equal([old], [echo(socket), line_of(stream)].uniq)
    @server.wait_for("worker.exited", pid: Integer(old)) { reload }

    assert_nil(last_of(socket))
    assert_equal([old], File.readlines(File.join(@server.folder, "ended"), chomp: true))
    assert_equal([old], File.readlines(File.join(@server.folder, "hooks"), chomp: true) & [old])
    assert_equal(1, @server.wait_past("streams.cut")["count"])
    assert_empty(@server.complaints)
    assert_equal("#{old}\n", last_lines(stream).last)
  end

  def test_one_that_grows_beyond_the_hard_limit_closes_them
    start("memory worker: 60.mb, hard: 120.mb\n#{LIVE}, drain: 600")
    old = live_worker
    socket = open("/live/ws")
    @server.wait_for("worker.leaving", pid: Integer(old), cause: "memory") { socket.write("grow\n") }
    line_of(socket, /\A\d+ grow\n\z/)
    assert_equal(old, echo(socket))
    hurried = @server.wait_for("worker.hurried", pid: Integer(old)) { socket.write("grow\n") }
    @server.wait_past("worker.exited", pid: Integer(old))

    assert_match(/over the hard limit of 120.0 MiB/, hurried["reason"])
    assert_equal(["live", 1], hurried.values_at("pool", "connections"))
    refute_equal(old, live_worker)
  end

  def test_scaled_down_and_with_one_thread
    start("#{LIVE.sub("threads: 4", "threads: 1").sub("workers: 1", "workers: 2")}, drain: 600")
    sockets = Array.new(8) { open("/live/ws") }
    workers = sockets.map { |one| echo(one) }
    @server.wait_for("worker.leaving") { pando("scale", "live", "1") }
    reload

    assert_equal(workers, sockets.map { |one| echo(one) })
    assert_equal(2, @server.events("worker.leaving").count { |event| event["pool"] == "live" && event["drain"] == 600 })
  end

  # Its one thread is busy with the stream until the monitor kills it.
  def test_a_stream_of_a_worker_with_one_thread_is_cut_not_lost
    start("stop_timeout 2\n#{LIVE.sub("threads: 4", "threads: 1")}")
    old = live_worker
    stream = open("/live/stream")
    assert_equal(old, line_of(stream))
    @server.wait_for("worker.killed", pid: Integer(old)) { reload }

    assert_equal(1, @server.wait_past("streams.cut")["count"])
    assert_empty(@server.events("requests.lost"))
  end

  # A stop has a limit of its own, for those too that leave already.
  def test_a_stop_does_not_wait_for_them
    start("stop_timeout 5\n#{LIVE}, drain: 600\n#{EXIT}")
    sockets = [open("/live/ws")]
    echo(sockets.first)
    reload
    sockets << open("/live/ws")
    pids = sockets.map { |one| echo(one) }
    stream = open("/live/stream")
    assert_equal(pids.last, line_of(stream))
    folder = File.dirname(@server.write("kept", ""))
    hooks = File.join(folder, "hooks")
    @server.signal("TERM")
    sockets.each { |one| assert_nil(last_of(one)) }
    wait_until { File.exist?(hooks) && (pids - File.readlines(hooks, chomp: true)).empty? }

    assert_predicate(@server.wait_for_exit, :success?)
    assert_empty(@server.complaints)
    assert_equal([1], @server.events("streams.cut").map { |event| event["count"] })
  end

  # The monitor takes the time up again.
  def test_an_upgrade_of_the_monitor
    start("#{LIVE}, drain: 600")
    socket = open("/live/ws")
    pid = echo(socket)
    reload
    @server.wait_for("monitor.upgraded") { pando("upgrade") }

    assert_equal(pid, echo(socket))
    assert_includes(1..600, process(pid)["drain_left"])
    @server.wait_for("worker.exited", pid: Integer(pid)) { socket.close }
  end

  # It is no refork's source: that would end them.
  def test_without_a_pool_a_worker_with_connections_is_not_forked
    start("drain 600\nrefork :manual\nworkers 1")
    socket = open("/live/ws")
    pid = echo(socket)
    wait_until(message: -> { pando("status") }) { process(pid)["connections"] == 1 }
    answer = pando("refork")

    assert_match(/`drain` says to keep them/, answer)
    assert_equal(pid, echo(socket))
    socket.close
    wait_until(message: -> { pando("status") }) { process(pid)["connections"].nil? }
    @server.wait_for("refork.finished") { pando("refork") }
  end

  private

  def start(config)
    @server = serve(app: APP, config: "control \"p.sock\"\n#{"workers 1\n" unless config.include?("\nworkers")}" \
                                      "fork_safety threads: :allow\n#{config}")
    @server.wait_past("server.ready")
  end

  def reload = @server.wait_for("reload.finished", "reload.failed") { @server.signal("HUP") }
  def live_worker = @server.nodes("live").reject { |one| one.title.include?("draining") }.first.pid.to_s

  def open(path)
    @server.connect.tap do |client|
      @clients << client
      client.write("GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n")
    end
  end

  # A worker whose request is not over yet would come last, whatever it has.
  def open_at_rest
    wait_until { live_processes.none? { |process| process["job"] } }
    open("/live/ws").tap { |socket| echo(socket) }
  end

  # @return [String] the pid of the worker that echoes
  def echo(socket)
    socket.write("hello\n")
    line_of(socket, /\A\d+ hello\n\z/)[/\d+/]
  end

  # @return [String] the next line that is one of the app's: heads and chunks' lengths are none
  def line_of(socket, pattern = /\A\d{3,}\n\z/)
    loop do
      socket.wait_readable(90) || flunk("nothing comes")
      line = socket.gets or flunk("the connection was closed")
      return line.chomp if line.match?(pattern)
    end
  end

  # @return [nil] at the end
  def last_of(socket)
    socket.wait_readable(90) || flunk("it stays open")
    socket.gets
  rescue Errno::ECONNRESET
    nil
  end

  def last_lines(socket)
    lines = []
    loop { lines << (socket.gets or break) }
    lines.grep(/\A\d{3,}\n\z/)
  rescue Errno::ECONNRESET
    lines.grep(/\A\d{3,}\n\z/)
  end

  def process(pid) = processes.find { |one| one["pid"] == Integer(pid) }
  def processes = JSON.parse(pando("status", "--format", "json")).fetch("processes")
  def live_processes = processes.select { |one| one["role"] == "worker" && one["pool"] == "live" }

  def pando(*words)
    out, = Open3.capture2e(*Support::Checkout.pando(*words, "-c", "pando.rb"), chdir: @server.folder)
    out
  end
end
