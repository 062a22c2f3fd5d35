# frozen_string_literal: true

require "test_helper"
require "json"
require "support/server_process"
require "support/waiting"

# Promise: where a slow request stands is written while it runs, and the request goes on.
class SlowLogTest < Minitest::Test
  include Support::Waiting

  parallelize_me! # they wait most of the time

  APP = <<~'RUBY'
    def in_ruby(seconds) = (sleep seconds)
    run lambda { |env|
      case env["PATH_INFO"]
      when "/sleep" then in_ruby(env["QUERY_STRING"][/\d+\.?\d*/].to_f)
      when "/hold" then "x".crypt("$6$rounds=8000000$saltsalt") # in C, keeps the interpreter lock
      end
      [200, {}, ["done"]]
    }
  RUBY

  def teardown = @server&.kill

  def test_the_stack_of_a_sleeping_request_at_two_doublings_and_its_end
    start("workers 1")
    event = @server.wait_for("request.slow") { assert_equal(200, get_with_id("/sleep?2.4&secret=1").status) }
    wait_until { entries.last["ended"] } # the client has its answer before
    first, second, *rest = entries

    assert_includes(0.5...1.0, first["seconds"])
    assert_includes(1.0...2.0, second["seconds"])
    assert(first["stack"].grep(/config\.ru:1:in .*in_ruby/).any?, first.inspect)
    assert_equal(["GET", "/sleep", "id-7", "web"], first.values_at("method", "path", "request_id", "pool"))
    assert_equal(["GET /sleep", 0], event.values_at("request", "slot"))
    assert_match(/config\.ru:1/, event["location"])
    assert_equal([true, 200], rest.last.values_at("ended", "status"))
    refute_includes(File.read(log), "secret")
    assert_equal(0o640, File.stat(log).mode & 0o777)
    assert_equal(1, @server.events("request.slow").size)
    assert_equal([[true, 200]], kept.map { |one| one.values_at("ended", "status") })
  end

  def test_direct_mode
    start("workers 1\nreactor false")
    @server.wait_for("request.slow") { @server.get("/sleep?1") }

    assert(entries.first["stack"].grep(/in_ruby/).any?, entries.inspect)
  end

  def test_the_right_thread
    start("workers 1\nthreads 5")
    quick = Array.new(3) { Thread.new { @server.get("/sleep?0.2") } }
    @server.wait_for("request.slow") { @server.get("/sleep?1") }
    quick.each(&:join)

    assert(entries.first["stack"].grep(/config\.ru:1:in .*in_ruby/).any?, entries.inspect)
    assert_equal(["/sleep"], entries.map { |entry| entry["path"] }.uniq)
  end

  def test_native_code_that_holds_the_lock
    start("workers 1")
    event = @server.wait_for("request.slow") { @server.get("/hold") }

    assert_match(/interpreter lock in native code \(state R, [\d.]+ of a core/, event["reason"])
    assert_operator(event["seconds"], :<=, 1.6)
    assert(entries.first["stack"].grep(/config\.ru:/).any?, entries.inspect) # it was written when that was over
  end

  def test_a_full_disk_and_a_fifo_without_a_reader_stop_nobody
    ["/dev/full", :fifo].each do |path|
      start("workers 1", path: path)
      @server.wait_for("request.slow") { assert_equal("done", @server.get("/sleep?1").body) }
      assert_empty(@server.events("worker.lost"))
      @server.kill
    end
  end

  def test_a_fast_request_has_no_entry
    start("workers 1")
    @server.get("/")

    assert_empty(entries)
  end

  def test_a_folder_that_is_missing_ends_the_start
    @server = Support::ServerProcess.new(app: APP, config: "slow_log 2, 'log/slow.log'")

    assert_equal(1, @server.wait_for_exit.exitstatus)
    assert_match(%r{slow_log cannot be written: .*log/slow\.log.*Make the folder}, @server.output)
  end

  def test_workers_of_a_reforked_generation
    start("workers 1")
    @server.get("/")
    @server.refork
    event = @server.wait_for("request.slow") { @server.get("/sleep?1") }

    assert_equal(@server.events("generation.current").last["generation"], event["generation"])
    assert(entries.first["stack"].grep(/in_ruby/).any?, entries.inspect)
  end

  def test_pando_slow
    start("workers 1")
    @server.wait_for("request.slow") { @server.get("/sleep?1") }

    assert_includes(pando("slow"), "GET /sleep")
    assert_equal("GET /sleep", kept.first["request"])
    assert_includes(pando("slow", "--stacks"), "in_ruby")
  end

  private

  def start(config, path: "slow.log")
    folder = Dir.mktmpdir("pando-slow")
    path = File.join(folder, "fifo").tap { |name| File.mkfifo(name) } if path == :fifo
    @log = path == "slow.log" ? File.join(folder, path) : path
    @server = Support::ServerProcess.start(app: APP, config: <<~RUBY)
      #{config}
      timeout false
      log_format :json
      refork :manual
      slow_log 0.5, #{@log.inspect}
    RUBY
  end

  attr_reader :log

  def entries = File.readlines(log).map { |line| JSON.parse(line) }
  def kept = JSON.parse(pando("slow", "--format", "json"))["requests"]
  def get_with_id(path) = @server.get(path, "X-Request-Id" => "id-7")

  def pando(*arguments)
    IO.popen([*Support::Checkout.pando(*arguments, "-C", @server.folder), { err: %i[child out] }], &:read)
  end
end
