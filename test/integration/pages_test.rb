# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "support/servers"

# `pando pages` asks a worker which memory is its own, and why.
class PagesTest < Minitest::Test
  include Support::Servers

  PAGES = 200
  APP = <<~RUBY.freeze
    TEXT = "a" * (4096 * #{PAGES + 1})
    OBJECTS = Array.new(50_000) { |number| "object \#{number}" }
    run lambda { |env|
      case env["PATH_INFO"]
      when "/write" then 1.upto(#{PAGES}) { |page| TEXT.setbyte((page * 4096) - 1, 66) }
      when "/gc" then GC.start
      when "/fork" then next [200, {}, [fork { sleep }.to_s]]
      when "/limit"
        free = IO.sysopen(File::NULL).tap { |descriptor| IO.for_fd(descriptor).close }
        Process.setrlimit(:NOFILE, free, Process.getrlimit(:NOFILE).last)
      end
      [200, {}, [Process.pid.to_s]]
    }
  RUBY
  MEBIBYTE = 1 << 20

  def setup
    @server = serve(app: APP, config: "workers 1\nrefork :manual\ncontrol \"control.sock\"")
    @server.get("/")
  end

  def test_the_kinds_add_up_to_what_the_kernel_says
    report, complaint, status = report("pages", "0")
    own = report["private"].values.sum

    assert_equal [0, ""], [status, complaint]
    assert_in_delta report["worker"]["private"], own, (own / 20) + MEBIBYTE
    assert_operator report["private"]["ruby_heap"], :>, 0
    assert_operator report["shared"]["ruby_heap"], :>, MEBIBYTE
    assert_operator report["copied"].values.sum, :<=, own
    assert_equal ["pando: no worker is ready there\n", 1], pando("pages", "7").drop(1)
  end

  def test_a_recording_tells_what_made_pages_private
    report, _, status = recorded(%w[/ /write /gc /]) { |paths| paths.each { |path| @server.get(path) } }
    requests = report["requests"]

    assert_kind_of Float, report["worker"]["seconds"]
    assert_equal [0, ["GET /", "GET /write", "GET /gc", "GET /"]], [status, requests.map { |one| one["request"] }]
    assert_operator requests[1]["causes"].slice("request", "compiling", "mixed").values.sum, :>=, PAGES * 4096
    assert_operator requests[2]["causes"].slice("major_gc", "mixed").values.sum, :>, 50 * 4096
    assert_operator requests[3]["causes"].values.sum, :<, PAGES * 4096
    assert_empty @server.complaints
  end

  def test_threads_of_a_worker_make_one_recording
    @server.stop
    @server = serve(app: APP, config: "workers 1\nthreads 5\nrefork :manual\ncontrol \"control.sock\"")
    @server.get("/")
    report, complaint, status = recorded(["/"] * 20) do |paths|
      Array.new(5) { Thread.new { paths.map { |path| @server.get(path).status } } }.each(&:join)
    end

    assert_equal [0, ""], [status, complaint]
    assert_equal ["GET /"] * 20, report["requests"].map { |one| one["request"] }.first(20)
    assert_empty @server.complaints
  end

  # The child has the worker's pipe to the command too, so that the pipe does not end.
  def test_a_recording_ends_although_the_application_has_forked
    child = nil
    report, complaint, status = recorded(%w[/fork /]) do |paths|
      child = paths.map { |path| @server.get(path).body }.first.to_i
    end

    assert_equal [0, ""], [status, complaint]
    assert_equal(["GET /fork", "GET /"], report["requests"].map { |one| one["request"] }.first(2))
  ensure
    Process.kill("KILL", child) if child
  end

  def test_a_recording_ends_with_a_promotion_and_with_its_worker
    report, complaint, status = recorded(%w[/ / /]) { @server.refork }

    assert_equal [1, "pando: the recording is incomplete: it was forked\n"], [status, complaint]
    # A page that the mold has left is its worker's alone.
    assert_empty(report["requests"].map { |one| one["request"] } - ["(after the last one)"])

    _, complaint, status = recorded(%w[/ / /]) { Process.kill("KILL", @server.get("/").body.to_i) }

    assert_equal [1, "pando: the worker has written nothing: it ended, or could not\n"], [status, complaint]
    assert_equal 200, @server.get("/").status
  end

  def test_a_worker_without_free_descriptors_says_so_and_lives_on
    pid = @server.get("/limit").body

    assert_equal ["", "pando: the worker could not record: Too many open files\n", 1], pando("pages", "0")
    assert_equal(["Too many open files"], @server.events("pages.failed").map { |event| event["reason"] })
    assert_equal pid, @server.get("/").body
    assert_empty @server.events("worker.leaving")
  end

  private

  # Asks for as many requests as there are paths; they come when the worker looks at its pages.
  def recorded(paths)
    client = Thread.new { report("pages", "0", "--record", paths.size.to_s, "--wait", "60") }
    wait_until { looking? }
    yield paths
    client.value
  end

  def looking?
    worker = @server.workers.max_by { |one| one.title[/gen (\d+)/, 1].to_i }
    Dir.children("/proc/#{worker.pid}/fd").any? do |fd|
      File.readlink("/proc/#{worker.pid}/fd/#{fd}").end_with?("/pagemap")
    rescue Errno::ENOENT
      false
    end
  end

  def report(*words)
    text, complaint, status = pando(*words, "--format", "json")
    [text.empty? ? nil : JSON.parse(text), complaint, status]
  end

  def pando(*words)
    flags = ["-C", @server.folder, "--control", "control.sock"]
    text, complaint, status = Open3.capture3(*Support::Checkout.pando(*words, *flags))
    [text, complaint, status.exitstatus]
  end
end
