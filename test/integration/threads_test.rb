# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "rbconfig"
require "support/admin_client"
require "support/servers"

# Promise: with `threads` a worker has several requests at once. Each has deadlines of its own, a death costs only the
# request that caused it, and reforks go on.
class ThreadsTest < Minitest::Test
  include Support::Servers

  # A request to /held ends when somebody writes into the FIFO that its query names.
  APP = <<~'RUBY'
    body = Class.new do
      def each = yield("#{Process.pid} ")
      def close = hold_until("go")
    end
    run lambda { |env|
      case env["PATH_INFO"]
      when "/held"
        env["pando.timeout"].disable!
        File.read(File.join(__dir__, env["QUERY_STRING"]))
      when "/end_thread" then Thread.current.kill
      when "/exit" then exit
      when "/interrupt" then raise Interrupt
      when "/die" then Process.kill("KILL", Process.pid)
      when "/crash"
        File.read(File.join(__dir__, "crash"))
        require "fiddle" # gives the interpreter lock away while it calls
        Fiddle::Function.new(Fiddle.dlopen(nil)["strlen"], [Fiddle::TYPE_VOIDP], Fiddle::TYPE_SIZE_T).call(8)
      when %r{\A/spin}
        over = false
        Thread.new { over = File.read(File.join(__dir__, "spin")) }
        nil until over
      when "/late" then sleep
      when "/after" then env["rack.response_finished"] << proc { hold_until("go") }
      when "/close" then next [200, {}, body.new]
      end
      [200, {}, ["#{Process.pid} #{Thread.current.name}"]]
    }
  RUBY
  REQUESTS = 300

  def test_one_worker_has_several_requests_at_once
    start("threads 3")
    pids = hold(3) do
      assert_match(%r{GET /held for [\d.]+ s, and 2 more}, status)
      @server.workers.each { |worker| assert_match(/busy\z/, worker.title) }
    end

    assert_equal([1, 3], [pids.map(&:first).uniq.size, pids.map(&:last).uniq.size])
    assert_match(/worker 0 .* idle /, status)
  end

  # On one lane: a worker that answers fast takes the next request on the thread that is at work.
  { "/after" => "threads 2", "/close" => "threads :auto" }.each do |path, setting|
    define_method("test_work_after_a_response_holds_up_no_other_request_with_#{path.delete("/")}") do
      start("#{setting}\ntimeout false")
      responses = Array.new(100) { @server.get("/") } + [@server.get(path)]
      responses += Array.new(4) { Thread.new { @server.get("/") } }.map { |client| client.join(20)&.value }
      @server.write("go", "")

      assert_equal([200], responses.map { |response| response&.status }.uniq)
      assert_equal(1, responses.map { |response| response.body[/\d+(?= )/] }.uniq.size)
    end
  end

  def test_a_further_request_waits
    start("threads 2")
    waiting = nil
    hold(2) do
      waiting = Thread.new { @server.get("/") }
      wait_until(message: -> { status }) { status.include?("queued: 1") }
    end

    assert_equal(200, waiting.value.status)
  end

  def test_an_idle_worker_comes_first
    start("threads 2", workers: 2)
    wait_until(message: "the threads of both workers") { request_threads == 4 }

    assert_equal(2, hold(2) { nil }.map(&:first).uniq.size)
  end

  # Each hits the thread of its own request, and the worker is replaced when the others have ended.
  def test_each_request_has_its_own_deadline
    port = free_port
    start("threads 3\ntimeout 1, grace: 20\nadmin \"127.0.0.1:#{port}\"")
    pids = hold(1, verb: "POST") do
      late = Array.new(2) { Thread.new { @server.get("/late").status } }
      assert_equal([504, 504], late.map(&:value))
    end

    timed_out = @server.events("request.timed_out")
    assert_equal(%w[/late /late], timed_out.map { |event| event["path"] })
    assert_equal(pids.first.first, timed_out.first["pid"])
    assert(timed_out.all? { |event| event["location"].include?("config.ru") }, timed_out.inspect)
    @server.wait_past("worker.exited", pid: pids.first.first)
    admin = Support::AdminClient.new(@server, port)
    wait_until { admin.metric('pando_requests_timed_out_total{pool="web",kind="soft"}') == 2 } # may be a moment old
  end

  # It is tried once more, as without threads; the others as often as it takes.
  def test_a_death_is_blamed_on_the_request_that_has_the_interpreter_lock
    skip("Ruby #{RUBY_VERSION} does not say which thread has the interpreter lock") if RUBY_VERSION < "3.2"
    start("threads 3")
    pids = hold(2) do
      assert_equal(502, @server.get("/die").status)
      @server.wait_past("worker.ready", slot: 0)
    end

    assert_equal(1, pids.map(&:first).uniq.size, "both were tried again")
    assert_equal("GET /die", @server.events("worker.lost").first["request"])
    deaths = %w[worker.lost worker.failed].flat_map { |name| @server.events(name) } # the next may not be ready yet
    assert_equal(2, deaths.size, deaths.inspect)
    # All three after the first death; after the second those beside the killer that had begun again.
    wait_until { @server.events("requests.retried").sum { |event| event["count"] } >= 3 }
    assert_operator(@server.events("requests.retried").sum { |event| event["count"] }, :<=, 5)
  end

  # As native code does that gives the lock away.
  def test_a_crash_without_the_interpreter_lock_is_blamed_on_the_request_that_two_workers_had
    skip("Ruby #{RUBY_VERSION} does not say which thread has the interpreter lock") if RUBY_VERSION < "3.2"
    start("threads 3")
    File.mkfifo(crash = File.join(@server.folder, "crash"))
    File.mkfifo(spin = File.join(@server.folder, "spin"))
    crashing = Thread.new { @server.get("/crash").status }
    first, second = Array.new(2) { |number| crash_beside_a_request_with_the_lock(crash, "/spin#{number}") }
    opened_for_writing(spin).then { |writer| writer.write("over") && writer.close }

    assert_equal([502, 502, 200], [first, crashing, second].map(&:value))
    assert_equal(["GET /spin0", "GET /crash"], @server.events("worker.lost").map { |event| event["request"] })
  end

  # @return [Thread] of the request's client, whose value is the status
  def crash_beside_a_request_with_the_lock(crash, target)
    writer = opened_for_writing(crash)
    deaths = @server.events("worker.lost").size
    client = Thread.new { @server.get(target).status }
    wait_until(message: -> { status }) { running == 2 }
    writer.write("now")
    writer.close
    wait_until(message: -> { status }) { @server.events("worker.lost").size > deaths }
    client
  end

  def test_a_request_that_ends_its_thread_costs_only_itself
    start("threads 2")
    2.times do
      failed = @server.wait_for("request.failed") { assert_equal(500, @server.get("/end_thread").status) }
      assert_equal("/end_thread", failed["path"])
    end

    assert_equal(2, hold(2) { nil }.size)
    assert_empty(@server.events("worker.lost"))
  end

  def test_reforks_and_reloads_under_load
    start("threads 4", workers: 2)
    answers = Array.new(8) { Thread.new { Array.new(REQUESTS) { @server.get("/").status } } }
    3.times { @server.refork }
    @server.wait_for("reload.finished", "reload.failed") { @server.signal("HUP") }

    assert_equal({ 200 => 8 * REQUESTS }, answers.flat_map(&:value).tally)
    assert_empty(@server.complaints)
  end

  def test_a_reload_changes_their_number
    start("threads 1")
    assert_equal(1, hold(1) { nil }.size)
    @server.write("pando.rb", File.read(File.join(@server.folder, "pando.rb")).sub("threads 1", "threads 3"))
    @server.wait_for("reload.finished", "reload.failed") { @server.signal("HUP") }
    assert_equal(3, hold(3) { nil }.map(&:last).uniq.size)
    @server.refork
    assert_equal(3, hold(3) { nil }.map(&:last).uniq.size)
  end

  # Two threads on one lane would give clients the answers of others.
  def test_a_refork_that_is_given_up_leaves_each_request_its_thread
    start("threads 2\ntimeout 1, grace: 0.5")
    held = hold(1, verb: "POST") do
      @server.wait_for("refork.postponed") { @server.signal("USR2") }
      answers = Array.new(20) { @server.get("/") }
      assert_equal([200], answers.map(&:status).uniq)
      assert_equal(1, answers.map { |answer| answer.body.split(" ", 2).last }.uniq.size)
    end

    assert_empty(@server.events("requests.lost"))
    assert_equal(2, (held + hold(2) { nil }).map(&:last).uniq.size)
  end

  # The neighbour has its time, and its answer.
  def test_a_request_that_ends_its_worker_by_an_exception_leaves_its_neighbours_alone
    start("threads 2")
    { "/exit" => "SystemExit", "/interrupt" => "Interrupt" }.each do |path, error|
      held = hold(1, verb: "POST") do
        failed = @server.wait_for("request.failed") { assert_equal(500, @server.request("POST", path).status) }
        assert_equal([path, error], [failed["path"], failed["error"]["class"]])
      end
      exited = @server.wait_past("worker.exited", pid: held.first.first)

      assert_match(/#{error}/, exited["reason"])
      @server.wait_until_busy(0)
    end
    assert_empty(@server.events("requests.lost") + @server.events("worker.lost"))
  end

  # The neighbour has its time here, too.
  { "after_request_complete" => ["/fail", 'env["PATH_INFO"] == "/fail"'],
    "after_worker_timeout" => ["/late", "env"] }.each do |hook, (path, condition)|
    define_method("test_#{hook}_that_raises_costs_its_worker_and_is_named") do
      start("threads 2\ntimeout 1, grace: 20\n#{hook} { |_, _, env| raise 'no good' if #{condition} }\n" \
            "before_worker_exit { |_, worker| File.write(File.join(__dir__, 'left'), Process.pid) }")
      pid, = hold(1, verb: "POST") do
        @server.request("POST", path)
        wait_until(message: -> { status }) { running == 1 }
      end.first
      lost = @server.wait_past("worker.lost", pid: pid)

      assert_match(/#{hook} hook at .*pando\.rb:\d+ raised RuntimeError: no good/, lost["reason"])
      assert_equal(pid.to_s, File.read(File.join(@server.folder, "left")))
      assert_empty(@server.events("requests.lost"))
      assert_equal(200, @server.get("/").status)
    end
  end

  # A request that is over before the worker has reported ready could not have it replaced.
  def test_no_request_begins_before_the_worker_is_ready
    start("threads 2\nhealth '/health'\nafter_worker_ready { hold_until('go') }", ready: false)
    @server.wait_past("reactor.ready")
    request = Thread.new { @server.request("POST", "/exit").status }
    @server.write("go", "")
    @server.wait_until_current

    assert_equal(500, request.value)
    assert_equal("a request raised SystemExit", @server.wait_past("worker.exited")["reason"])
    assert_empty(@server.events("worker.lost"))
  end

  # All its threads are joined before: none is lost in the child, and the worker serves on.
  def test_a_worker_with_requests_is_forked_when_they_have_ended
    start("threads 2")
    before = nil
    hold(1) do
      before = @server.workers.map(&:pid)
      @server.wait_for("refork.started") { @server.signal("USR2") }
    end
    @server.wait_past("refork.finished")

    refute_equal(before, @server.workers.map(&:pid))
    assert_empty(@server.events("finding.reported"))
  end

  # The signal by which the monitor interrupts requests means nothing to a mold that was a worker.
  def test_a_mold_outlives_the_signal_of_timeouts
    start("threads 2")
    @server.refork
    mold = @server.mold.pid
    Process.kill("URG", mold)
    worker = @server.events("worker.ready").last["pid"]
    @server.wait_for("worker.ready") { Process.kill("KILL", worker) }

    assert_equal(mold, @server.mold.pid)
    assert_empty(@server.events("mold.lost"))
  end

  # While a thread computes, a further request would only slow it down.
  def test_with_auto_a_worker_takes_another_request_only_while_nobody_has_the_interpreter_lock
    skip("Ruby #{RUBY_VERSION} does not say which thread has the interpreter lock") if RUBY_VERSION < "3.2"
    start("threads :auto")
    assert_equal(4, hold(4) { nil }.map(&:last).uniq.size)
    File.mkfifo(spin = File.join(@server.folder, "spin"))
    spinning = Thread.new { @server.get("/spin") }
    writer = opened_for_writing(spin)
    waiting = Thread.new { @server.get("/") }
    wait_until(message: -> { status }) { status.include?("queued: 1") }
    writer.write("over")
    writer.close

    assert_equal([200, 200], [spinning, waiting].map { |thread| thread.value.status })
  end

  def test_threads_want_the_reactor
    _, errors, code = pando("check", "-c", write_config("threads 2\nreactor false"))

    assert_equal(2, code)
    assert_match(/threads .*reactor/, errors)
  end

  private

  def start(lines, workers: 1, **options)
    config = "workers #{workers}\nrefork :manual\ncontrol \"p.sock\"\n#{lines}"
    @server = serve(app: APP, config: config, **options)
  end

  # They start when their worker is ready, and then have names.
  def request_threads
    tasks = @server.workers.flat_map { |worker| Dir["/proc/#{worker.pid}/task/*/comm"] }
    tasks.count { |path| File.read(path).start_with?("pando request") }
  end

  # Has so many requests that are answered only after the block.
  # @return [Array<Array(Integer, String)>] the pid and the thread of each
  def hold(count, verb: "GET")
    names = Array.new(count) { |number| "held#{number}-#{@held = @held.to_i + 1}" }
    held = names.map do |name|
      File.mkfifo(path = File.join(@server.folder, name))
      [path, Thread.new { @server.request(verb, "/held?#{name}").body }]
    end
    wait_until(message: -> { status }) { running == count }
    yield
    held.map(&:first).each { |path| File.write(path, "on") }
    held.map { |_, thread| thread.value.split(" ", 2).then { |pid, name| [pid.to_i, name] } }
  end

  # As soon as the application reads it.
  def opened_for_writing(fifo)
    wait_until do
      File.open(fifo, File::WRONLY | File::NONBLOCK)
    rescue Errno::ENXIO
      nil
    end
  end

  # @return [Integer] requests that workers have now
  def running
    workers = JSON.parse(pando("status", "--format", "json", "-c", "pando.rb").first)["processes"]
    workers.sum { |process| process["at_once"] || (process["state"] == "busy" ? 1 : 0) }
  end

  def status = pando("status", "-c", "pando.rb").first

  def write_config(lines)
    @folder = Dir.mktmpdir("pando")
    File.join(@folder, "pando.rb").tap { |path| File.write(path, lines) }
  end

  def teardown
    FileUtils.rm_rf(@folder) if @folder
    super
  end

  def pando(*words)
    lib = File.expand_path("../../lib", __dir__)
    exe = File.expand_path("../../exe/pando", __dir__)
    out, errors, status = Open3.capture3(RbConfig.ruby, "-W0", "-I", lib, exe, *words,
                                         chdir: @server ? @server.folder : @folder)
    [out, errors, status.exitstatus]
  end
end
