# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/servers"

# Promise: nothing waits for the reader of the log. It is a pipe here whose reader takes nothing, and what is written is
# longer than a pipe takes at once.
class StalledLogTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  # So deep that its backtrace is longer than a page.
  DEEP = <<~'RUBY'
    def a_method_of_a_long_name_that_fills_the_backtrace_up(depth)
      depth.zero? ? raise("no\ngood") : a_method_of_a_long_name_that_fills_the_backtrace_up(depth - 1)
    end
  RUBY
  APP = <<~RUBY.freeze
    #{DEEP}
    run lambda { |env|
      case env["PATH_INFO"]
      when "/raise" then a_method_of_a_long_name_that_fills_the_backtrace_up(200)
      when "/deaf" then Thread.handle_interrupt(Object => :never) { sleep }
      end
      [200, {}, ["fine"]]
    }
  RUBY
  CONFIG = <<~RUBY.freeze
    workers 2
    refork :manual
    timeout 1, grace: 1
    control "control.sock"
    health "/up", live: "/live"
    #{DEEP}
    service(:fragile) do |service|
      service.wait(0.01) until File.exist?("break")
      a_method_of_a_long_name_that_fills_the_backtrace_up(200)
    end
  RUBY

  def setup
    @log = File.join(@log_folder = Dir.mktmpdir, "log")
    File.mkfifo(@log)
    @reader = File.open(@log, File::RDWR | File::NONBLOCK)
    @text = +""
  end

  def teardown
    super
    @reader.close
    FileUtils.rm_rf(@log_folder)
  end

  def test_text
    boot("text")
    assert_nobody_waits
    wait_for_line(/pando ERROR lines\.lost count=\d+ pid=\d+$/)
    @text.each_line { |line| assert_match(/\A(?:\d{4}-\S+ pando |  +|pando: )\S/, line) }
  end

  def test_json
    boot("json")
    assert_nobody_waits
    wait_for_line(/"event":"lines\.lost","level":"error","count":\d+/)
    @text.each_line { |line| assert(JSON.parse(line), line) }
  end

  def test_lines_of_a_worker_that_ends_before_they_are_said_still_count
    boot("text")
    stuff
    pid = @server.workers.first.pid
    wait_until(message: "lost lines") { @server.get("/raise") && counted_lines.positive? }
    before = counted_lines
    @server.workers.each { |worker| Process.kill("KILL", worker.pid) }
    wait_until(message: "other workers") { @server.workers.size == 2 && @server.workers.none? { |one| one.pid == pid } }

    assert_operator counted_lines, :>=, before
  end

  # Its last words, too, are not waited for.
  def test_a_server_that_cannot_boot_ends
    @server = serve(app: "raise 'x' * 100_000", ready: false, wrapper: wrapper, arguments: %w[--log-format text])
    wait_until { listening? }
    stuff

    assert_equal 1, @server.wait_for_exit.exitstatus
  end

  private

  def boot(format)
    @server = serve(app: APP, config: CONFIG, ready: false, wrapper: wrapper, arguments: ["--log-format", format])
    wait_for_line(/server\.ready/)
  end

  def wrapper = ["sh", "-c", "exec \"$@\" 2>>#{@log}", "sh"]

  def assert_nobody_waits
    leave_room_for_a_page
    @server.write("break", "")
    pids = @server.workers.map(&:pid)
    assert_equal 504, @server.get("/deaf").status
    wait_until { (pids - @server.workers.map(&:pid)).any? }
    assert_equal [500], Array.new(100) { @server.get("/raise").status }.uniq
    assert_equal 200, @server.get("/live").status
    assert_operator lost, :>, 0
  end

  # Which is not enough for what the service's end is told by.
  def leave_room_for_a_page
    stuff
    @reader.readpartial(4096)
  end

  def stuff
    filler = "#{"x" * 4095}\n"
    loop { @reader.write_nonblock(filler) }
  rescue IO::WaitWritable
    nil
  end

  def lost
    wait_until(message: "lost lines") { counted_lines.positive? }
    counted_lines
  end

  # As `pando status` says, meanwhile.
  def counted_lines
    socket = File.join(@server.folder, "control.sock")
    command = Support::Checkout.pando("status", "--control", socket, "--format", "json")
    output, complaint, status = Open3.capture3(*command)
    assert_predicate status, :success?, complaint
    JSON.parse(output)["counts"].fetch("lines_lost", 0)
  end

  def wait_for_line(pattern)
    wait_until(message: -> { "#{pattern} in #{@text}" }) { read_log.match?(pattern) }
  end

  def listening? = read_log.include?("monitor.listening")

  def read_log
    loop { @text << @reader.read_nonblock(65_536) }
  rescue IO::WaitReadable
    @text.gsub!(/^x{4095}\n/, "")
    @text
  end
end
