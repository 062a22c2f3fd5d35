# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "pando/native"
require "time"
require "tmpdir"
require_relative "support/reactor_case"

# The access log as the reactor writes it: one line for each request, in each format, whatever clients and disks do.
class HTTPReactorAccessLogTest < Minitest::Test
  include HTTPSupport::ReactorCase

  COMMON, COMBINED, JSON_LINES = 0, 1, 2
  CLOCK = %r{\[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\]}

  def setup
    super
    @folder = Dir.mktmpdir
    @path = File.join(@folder, "access.log")
  end

  def teardown
    super
    FileUtils.rm_rf(@folder)
  end

  def stage_with_log(format, path: @path, **settings)
    stage(access_log: path, log_format: format, **settings)
  end

  # @return [Array<String>] once there are so many
  def lines(number = 1, path: @path)
    wait_until(message: -> { "#{number} lines, not #{File.read(path).inspect}" }) do
      File.exist?(path) && File.read(path).count("\n") >= number
    end
    File.readlines(path, chomp: true)
  end

  def json(number = 1) = lines(number).map { |line| JSON.parse(line) }

  def exchange(text, answer = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", lane: 0)
    client = request(text)
    taken = @stage.take(lane)
    @stage.data(taken, answer)
    @stage.finish(taken)
    body_of(client)
  end

  def test_the_common_format
    stage_with_log(COMMON)
    exchange("GET /a?b=1 HTTP/1.0\r\nuser-agent: x\r\n\r\n")

    assert_match(%r{\A127\.0\.0\.1 - - #{CLOCK} "GET /a\?b=1 HTTP/1\.0" 200 5\z}, lines.first)
  end

  def test_the_combined_format
    stage_with_log(COMBINED)
    exchange("GET / HTTP/1.1\r\nHost: a\r\nReferer:  http://b/ \r\nUser-Agent: curl/8\r\n\r\n")
    exchange(GET)

    assert_match(%r{\A127\.0\.0\.1 - - #{CLOCK} "GET / HTTP/1\.1" 200 5 "http://b/" "curl/8"\z}, lines(2).first)
    assert_match(/ 200 5 "-" "-"\z/, lines(2).last)
  end

  def test_the_time_is_now_in_the_local_zone
    stage_with_log(COMMON)
    exchange(GET)
    logged = Time.strptime(lines.first[CLOCK], "[%d/%b/%Y:%H:%M:%S %z]")

    assert_in_delta Time.now, logged, 60
    assert_equal Time.now.utc_offset, logged.utc_offset
  end

  def test_json
    stage(lanes: 0, access_log: @path, log_format: JSON_LINES, pools: 2, pool_paths: "1/reports", pool_names: "web,reports")
    @stage.ok("name", 1, 3, 7)
    @stage.ok("open", 1, 1)
    exchange(post = "POST /reports?b=1 HTTP/1.1\r\nHost: shop\r\nX-Request-Id: mine\r\nX-Forwarded-For: 192.0.2.7\r\n" \
             "Referer: r\r\nUser-Agent: u\r\ncontent-length: 3\r\n\r\nabc", lane: 1)
    line = json.first

    assert_equal({ "remote" => "127.0.0.1", "method" => "POST", "path" => "/reports?b=1", "protocol" => "HTTP/1.1",
                   "host" => "shop", "status" => 200, "sent" => 43, "received" => post.bytesize, "pool" => "reports",
                   "worker" => 3, "generation" => 7, "request_id" => "mine", "forwarded_for" => "192.0.2.7",
                   "referer" => "r", "user_agent" => "u" }, line.except("time", "duration", "queue", "service"))
    assert_in_delta Time.now, Time.iso8601(line.fetch("time")), 60
    assert_operator line["duration"], :>=, line["queue"] + line["service"]
    assert_operator line["queue"], :>, 0
  end

  def test_the_answers_request_id_counts_first
    stage_with_log(JSON_LINES)
    exchange("GET / HTTP/1.1\r\nhost: a\r\nx-request-id: theirs\r\n\r\n",
             "HTTP/1.1 200 OK\r\nX-Request-Id: ours\r\ncontent-length: 0\r\n\r\nx-request-id: body")

    assert_equal "ours", json.first["request_id"]
  end

  def test_requests_that_no_worker_answered
    stage_with_log(JSON_LINES, max_queue: 1, queue_timeout: 200, lanes: 0)
    request("nonsense\r\n\r\n").read
    Array.new(2) { request(CLOSE) }.each(&:read)
    bad, *shed = json(3)

    assert_equal [400, nil, nil], bad.values_at("status", "method", "worker")
    assert_equal [[503, "GET", nil]] * 2, shed.map { |line| line.values_at("status", "method", "worker") }
    assert_operator shed.last["queue"], :>=, 0.19
  end

  def test_a_client_that_leaves
    stage_with_log(COMMON)
    leaver = request(GET)
    @stage.take(0)
    reset(leaver)

    assert_match(/ 499 0\z/, lines.first)
  end

  def test_hostile_values_stay_in_their_line
    hostile = "a\"\\\t\xFF\u00e9\u{1F600}".b
    stage_with_log(COMBINED)
    exchange("GET / HTTP/1.1\r\nhost: a\r\nuser-agent: ".b << hostile << "\r\n\r\n")

    assert_equal ["\"a\\x22\\x5c\\x09\\xff\\xc3\\xa9\\xf0\\x9f\\x98\\x80\""], lines.map { |line| line[/"[^"]*"\z/] }
  end

  def test_hostile_values_are_json
    stage_with_log(JSON_LINES)
    values = { "a\"\\\tb".b => "a\"\\\tb", "\xFF\u00e9\xC3\u{1F600}".b => "\uFFFD\u00e9\uFFFD\u{1F600}",
               "\xED\xA0\x80\xC0\xAF".b => "\uFFFD" * 5, "\xF4\x90\x80\x80".b => "\uFFFD" * 4 }
    values.each_key { |sent| exchange("GET / HTTP/1.1\r\nhost: a\r\nuser-agent: ".b << sent << "\r\n\r\n") }

    assert_equal(values.values, json(4).map { |line| line["user_agent"] })
  end

  def test_long_values_are_cut
    stage_with_log(JSON_LINES)
    exchange("GET /#{"x" * 8000} HTTP/1.1\r\nhost: a\r\nreferer: #{"\\" * 5000}\r\n\r\n")
    line = json.first

    assert_equal [4096, 1024], line.values_at("path", "referer").map(&:size)
  end

  def test_a_part_of_all_and_each_failure
    stage_with_log(COMMON, log_sample: 1) # hardly any
    client = request(GET * 20)
    20.times { @stage.answer(@stage.take(0)) && body_of(client) }
    exchange(CLOSE, "HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n")

    assert_equal [500], lines.map { |line| line[/" (\d+) /, 1].to_i }
    counts("answers" => 21, "log_lines" => 1)
  end

  def test_it_opens_its_path_anew
    stage_with_log(COMMON)
    exchange(GET)
    lines
    File.rename(@path, "#{@path}.1")
    @stage.ok("reopen")
    wait_until { File.exist?(@path) }
    exchange(POST)

    assert_match(/"POST/, lines.first)
    assert_equal 1, lines(path: "#{@path}.1").size
  end

  # It writes into the old file on.
  def test_a_path_that_cannot_be_opened_anew
    stage_with_log(COMMON)
    exchange(GET)
    lines
    moved = "#{@path}.1"
    File.rename(@path, moved)
    Dir.mkdir(@path)
    @stage.ok("reopen")
    wait_until { exchange(GET) && @stage.stats.fetch("log_error") == Errno::EISDIR::Errno }

    assert_operator lines(2, path: moved).size, :>=, 2
  end

  def test_a_folder_that_is_missing_at_first
    path = File.join(@folder, "later", "access.log")
    stage_with_log(COMMON, path: path)
    exchange(GET)
    wait_until { exchange(GET) && @stage.stats.fetch("log_error") == Errno::ENOENT::Errno }
    Dir.mkdir(File.dirname(path))

    written = @stage.stats.fetch("log_lines")
    assert_operator lines(written, path: path).size, :>=, written
    wait_until { exchange(GET) && @stage.stats.fetch("log_error").zero? }
  end

  # Nobody reads the pipe: lines are dropped when memory is full, and each request is answered.
  def test_a_pipe_that_nobody_reads
    File.mkfifo(@path)
    stage_with_log(JSON_LINES)
    long = "GET / HTTP/1.1\r\nhost: a\r\nreferer: ".b << "\xFF".b * 1024 << "\r\n\r\n"
    exchange(long) until @stage.stats.fetch("log_dropped").positive?
    written = @stage.stats.fetch("log_lines")
    assert_operator written, :>, 200

    File.open(@path) { |pipe| written.times { assert_equal 200, JSON.parse(pipe.readline)["status"] } }
  end

  def test_the_last_lines_are_written_at_the_end
    stage_with_log(COMMON)
    20.times { exchange(CLOSE) }
    @stage.ok("drain")

    assert_equal 0, @stage.wait
    assert_equal 20, File.readlines(@path).size
  end

  def test_a_stuck_log_does_not_hold_up_the_end
    File.mkfifo(@path)
    stage_with_log(COMMON)
    exchange(CLOSE)
    @stage.ok("drain")

    assert_equal 0, @stage.wait
  end

  # ThreadSanitizer watches both threads.
  def test_lines_stay_whole_and_in_order
    program = Support::CProgram.path("log_lines", %w[http/log_writer.c], sanitizers: Support::CProgram::THREAD)
    output, status = Open3.capture2e(program, "20000")

    assert_predicate status, :success?, output
    assert_equal "20000 lines", output.chomp
  end

  def test_its_file_is_not_for_everybody
    stage_with_log(COMMON)
    exchange(GET)
    lines

    assert_equal 0, File.stat(@path).mode & 0o027
  end
end
