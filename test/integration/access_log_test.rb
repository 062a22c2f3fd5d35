# frozen_string_literal: true

require "test_helper"
require "json"
require "pando/histogram"
require "pando/cluster/control/line"
require "support/servers"

# Promise: each request is counted once, and logged once, whatever becomes of workers and generations meanwhile.
class AccessLogTest < Minitest::Test
  include Support::Servers

  APP = <<~RUBY
    run lambda { |env|
      request = Rack::Request.new(env)
      sleep(0.2) if request.path == "/slow"
      [request.path == "/missing" ? 404 : 200, { "x-request-id" => "id-" + request.query_string }, ["fine"]]
    }
  RUBY
  CONFIG = <<~RUBY
    workers 3
    refork :manual
    control "control.sock"
    access_log "log/access.log", :json
  RUBY
  CLIENTS = 4

  # Sends numbered requests until it is told to stop, each on the connection of the one before it if that is kept.
  class Client
    attr_reader :sent

    def initialize(server, number)
      @server = server
      @sent = {} # status by request
      @thread = Thread.new { ask(number) }
    end

    def stop
      @over = true
      @thread.join
    end

    private

    def ask(number)
      until @over
        number += CLIENTS
        @sent[number] = status_of(number)
      end
    ensure
      @socket&.close
    end

    def status_of(number)
      path = number % 10 == 3 ? "/missing" : "/"
      @socket ||= @server.connect
      @socket.write("GET #{path}?#{number} HTTP/1.1\r\nhost: shop\r\nuser-agent: test\r\n\r\n")
      head = +""
      head << @socket.readline until head.end_with?("\r\n\r\n")
      @socket.read(head[/^content-length: (\d+)/i, 1].to_i)
      (@socket = @socket.close) if head.match?(/^connection: close/i)
      head[/ (\d+)/, 1].to_i
    end
  end

  # The folder is the first thing that the server looks for.
  def serve_with_log(config = CONFIG)
    folder = Dir.mktmpdir("pando-log")
    (@folders ||= []) << folder
    FileUtils.mkdir_p(File.join(folder, "log"))
    FileUtils.mkdir_p(File.join(folder, "config"))
    File.write(File.join(folder, "config.ru"), APP)
    File.write(File.join(folder, "config/pando.rb"), "log_format :json\nrollout canary: false\n#{config}")
    @server = Support::ServerProcess.start(folder: folder).tap { |server| servers << server }
  end

  def teardown
    super
    @folders&.each { |folder| FileUtils.rm_rf(folder) }
  end

  def log(name = "access.log") = File.join(@server.folder, "log", name)

  # @return [Array<Hash>] of all files
  def lines = Dir[log("*")].flat_map { |file| File.readlines(file) }.map { |line| JSON.parse(line) }

  # @return [Array<Array(String, Hash)>]
  def records
    UNIXSocket.open(File.join(@server.folder, "control.sock")) do |socket|
      socket.puts("status")
      socket.readlines.map { |line| Pando::Cluster::Control::Line.decode(line) }
    end
  end

  # @return [Integer] answers counted
  def counted = records.sum { |word, pairs| word == "responses" ? pairs["counts"].split(",").sum(&:to_i) : 0 }

  def under_load
    clients = Array.new(CLIENTS) { |number| Client.new(@server, number) }
    yield
    clients.each(&:stop)
    clients.map(&:sent).reduce(:merge)
  end

  def kill_a_worker
    @server.wait_for_leavers
    victim = @server.workers.sample.pid
    @server.wait_for("worker.ready") { Process.kill("KILL", victim) }
  end

  def test_each_request_once_over_reforks_reloads_kills_and_rotations
    serve_with_log
    sent = under_load do
      @server.refork
      3.times { kill_a_worker }
      File.rename(log, log("access.log.1"))
      @server.signal("USR1")
      wait_until(message: "a new file") { File.exist?(log) }
      @server.wait_for("reload.finished") { @server.signal("HUP") }
      @server.refork
    end
    wait_until(message: -> { "#{sent.size} lines, not #{lines.size}" }) { lines.size >= sent.size }

    assert_operator sent.size, :>, 100
    assert_equal(sent, lines.to_h { |line| [line["path"][/\d+\z/].to_i, line["status"]] })
    assert_equal [sent.size, sent.size], [lines.size, counted]
    assert_operator lines.map { |line| line["generation"] }.uniq.size, :>=, 3
    assert(lines.all? { |line| line["request_id"] == "id-#{line["path"][/\d+\z/]}" || line["status"] >= 500 })
  end

  def test_what_is_counted_is_told
    serve_with_log("#{CONFIG}health '/up'\n")
    2.times { @server.get("/missing") }
    @server.get("/up")
    @server.get("/slow")
    assert_equal [200] * 2, Array.new(2) { @server.request("POST", "/", {}, "abc").status }

    assert_equal({ "GET" => "0,0,1,0,2,0", "POST" => "0,0,2,0,0,0" },
                 records.filter_map { |word, one| one.values_at("method", "counts") if word == "responses" }.to_h)
    durations = records.select { |word, one| word == "times" && one["kind"] == "duration" }.map(&:last)
    assert_operator Pando::Histogram.of(durations).percentile(0.99), :>=, 0.2
    assert_equal 5, Pando::Histogram.of(durations).size
  end

  def test_standard_output
    server = serve(app: APP, config: "access_log :stdout")
    server.get("/?hello")

    wait_until(message: "the line") { server.output.match?(%r{^- - - \[.*\] "GET /\?hello HTTP/1\.1" 200 4 "-" "-"$}) }
  end

  def test_the_time_is_in_the_zone_of_the_server_s_environment
    server = serve(app: APP, config: "access_log :stdout", env: { "TZ" => "HERE-5:30" })
    server.get("/?hello")

    wait_until(message: "the line") { server.output.match?(/^- - - \[.* \+0530\] "GET /) }
  end

  def test_a_folder_that_is_missing_ends_the_start
    server = Support::ServerProcess.new(app: APP, config: CONFIG).tap { |one| servers << one }

    assert_equal 1, server.wait_for_exit.exitstatus
    assert_match(%r{access_log cannot be written: .*log/access\.log.*Make the folder}, server.output)
  end

  # /dev/full is a disk without room.
  def test_a_full_disk_stops_nobody
    serve_with_log(CONFIG.sub("log/access.log", "/dev/full"))
    @server.wait_for("log.failed") { @server.get("/") }

    assert_equal [200] * 20, Array.new(20) { @server.get("/").status }
    assert_equal "No space left on device", @server.events("log.failed").first["reason"]
    assert_equal 1, @server.events("log.failed").size
  end
end
