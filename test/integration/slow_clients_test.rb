# frozen_string_literal: true

require "test_helper"
require "support/memory_group"
require "support/servers"

# Clients that take or send so slowly that they would hold others up, as seen from outside.
class SlowClientsTest < Minitest::Test
  include Support::Servers

  MIB = 1 << 20
  APP = <<~RUBY
    LARGE = "x" * (8 << 20)
    run lambda { |env|
      large = env["PATH_INFO"] == "/large"
      [200, { "content-type" => "text/plain" }, [large ? LARGE : "small"]]
    }
  RUBY

  def test_slow_readers_keep_no_worker
    server = slow_server("")
    readers = Array.new(10) { ask(server, "/large") }
    10.times { assert_equal "small", server.get("/").body }
    assert_operator buffers(server).fetch(:spooled_responses), :>, 30 * MIB

    assert_equal(8 * MIB, readers.first.read.split("\r\n\r\n", 2).last.bytesize)
    readers.each(&:close)
    wait_until { buffers(server).values.sum.zero? }
    assert_empty server.events("requests.lost")
  end

  def test_the_slowest_reader_is_cut_when_the_spool_is_full
    server = slow_server("spool total: 20.mb")
    readers = Array.new(6) { ask(server, "/large") }
    10.times { assert_equal "small", server.get("/").body }

    assert_match(/\Athe slowest reader, to free space \(\d/, server.wait_past("requests.lost").fetch("reason"))
    readers.each(&:close)
  end

  # In direct mode a slow reader keeps its worker for so long.
  def test_without_a_reactor_a_reader_that_takes_nothing_is_told_of
    server = slow_server("reactor false\nwrite_timeout 0.2")
    reader = ask(server, "/large")
    lost = server.wait_past("requests.lost")

    assert_equal [1, "write_timeout (1)", "GET /large"], lost.values_at("count", "reason", "request")
    assert_match(%r{\Aa client without an address, \d+ bytes/s\z}, lost["slowest"])
    assert_equal "small", server.get("/").body
  ensure
    reader&.close
  end

  def test_a_spool_in_memory_is_told_of_but_in_development
    skip("there is no tmpfs at /dev/shm") unless File.read("/proc/mounts").match?(%r{^\S+ /dev/shm tmpfs })
    told = %w[production development].map do |environment|
      events = slow_server('spool "/dev/shm"', env: { "RACK_ENV" => environment }).events("spool.in_memory")
      events.map { |event| event["path"] }
    end

    assert_equal [["/dev/shm"], []], told
  end

  # Large heads and bodies, of which each client sends all but the end: SLOW_CLIENTS of them.
  def test_clients_fill_no_small_container
    group = Support::MemoryGroup.new(150 * MIB)
    skip(group.obstacle) if group.obstacle
    count = many_descriptors
    server = slow_server("max_connections #{count + 100}", wrapper: group.wrapper)
    clients = Array.new(count) { |number| unfinished(server, number) }
    10.times { assert_equal "small", server.get("/").body }
    assert_operator buffers(server).slice(:heads, :bodies, :responses).values.sum, :<=, 15 * MIB
    clients.each(&:close)

    wait_until { buffers(server).values.sum.zero? }
    assert_equal 0, group.oom_kills
    assert_empty server.events("worker.lost") + server.events("reactor.lost")
  ensure
    servers.each(&:kill)
    group&.remove
  end

  private

  def slow_server(config, **options)
    serve(app: APP, config: "workers 1\nrefork false\ncontrol \"control.sock\"\n#{config}", **options)
  end

  def ask(server, path)
    server.connect.tap { |socket| socket.write("GET #{path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") }
  end

  # @return [Integer] clients that this process can have at once
  def many_descriptors
    count = Integer(ENV.fetch("SLOW_CLIENTS", "400"))
    most = Process.getrlimit(:NOFILE).last
    Process.setrlimit(:NOFILE, [most, (2 * count) + 1000].min, most)
    count
  end

  # It may be refused before it has sent all.
  def unfinished(server, number)
    body = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n#{"b" * 99_999}"
    head = "GET / HTTP/1.1\r\nHost: a\r\nX: #{"y" * 60_000}"
    socket = server.connect
    socket.write_nonblock(number.even? ? body : head)
    socket
  rescue Errno::ENOTCONN # the backlog of a UNIX socket was full
    socket.close
    retry
  rescue Errno::EPIPE, Errno::ECONNRESET
    socket
  end

  # @return [Hash{Symbol => Integer}] by kind
  def buffers(server)
    line = status(server)[/^queue .*/]
    %i[heads bodies responses spooled_bodies spooled_responses].to_h { |kind| [kind, line[/ #{kind}=(\d+)/, 1].to_i] }
  end

  def status(server)
    UNIXSocket.open(File.join(server.folder, "control.sock")) do |socket|
      socket.puts("status")
      socket.read
    end
  end
end
