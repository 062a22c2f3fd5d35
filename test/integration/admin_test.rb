# frozen_string_literal: true

require "test_helper"
require "open3"
require "pando/cli/control_client"
require "support/admin_client"
require "support/folder_jobs"
require "support/pando_versions"
require "support/promtool"
require "support/servers"

# Promise: the admin process shows what the server does and takes commands, whatever the workers do, and its death
# costs nothing.
class AdminTest < Minitest::Test
  include Support::Servers
  include Support::FolderJobs
  include Support::Promtool

  parallelize_me! # they wait most of the time

  CONFIG = "workers 2\nrefork :manual\ncontrol \"control.sock\"\n"
  # Seconds, beside those that its start takes on this machine, and for that start.
  BACK_WITHIN = 1.0
  STARTS_WITHIN = 5.0

  def start(setting = "", host: "127.0.0.1", port: free_port, **options)
    @port = port
    @server = serve(config: "#{CONFIG}admin \"#{host}:#{@port}\"\n#{setting}", **options)
    return if options[:ready] == false

    @admin = Support::AdminClient.new(@server, @port)
    @server.wait_past("admin.ready")
    wait_until { @admin.metric('pando_workers_ready{pool="web"}') == 2 } # an answer may be a second old
  end

  def test_it_answers_while_every_worker_is_stuck
    start
    wait_until { @admin.metric('pando_memory_pss_bytes{role="worker",pool="web"}') }
    workers = @server.workers.map(&:pid)
    workers.each { |pid| Process.kill("STOP", pid) }

    assert_equal(2, @admin.metric('pando_workers_ready{pool="web"}'))
    assert_equal("200", @admin.get("/livez").code)
    report = @admin.json("/status.json")
    assert_equal([1, "serving"], [report["schema"], report["server"]["state"]])
    assert_equal(workers.sort, report["processes"].filter_map { |one| one["pid"] if one["role"] == "worker" }.sort)
    assert_operator(report["processes"].find { |one| one["role"] == "worker" }["pss"], :>, 0)
  ensure
    workers&.each { |pid| Process.kill("CONT", pid) }
  end

  def test_the_keys_are_those_of_pando_status
    start
    text, = Open3.capture2(RbConfig.ruby, "-W0", "-I", Support::Checkout.path("lib"),
                           Support::Checkout.path("exe/pando"), "status", "--format", "json", "-c", "pando.rb",
                           chdir: @server.folder)

    assert_equal(["schema", *JSON.parse(text).keys], @admin.json("/status.json").keys)
    assert_includes(JSON.parse(text)["processes"].map { |one| one["role"] }, "admin")
  end

  def test_slow_requests
    folder = Dir.mktmpdir("pando-slow")
    start("slow_log 0.2, #{File.join(folder, "slow.log").inspect}\n",
          app: "run ->(_env) { sleep(0.01) until File.exist?('go'); [200, {}, []] }")
    assert_empty(@admin.json("/slow")["requests"])
    slow_one = Thread.new { @server.get("/report?secret=1") }
    # On a busy machine its worker may answer only when it is asked again.
    slow = wait_until { @admin.json("/slow")["requests"].find { |one| one["location"] } }
    @server.write("go", "")
    slow_one.join

    assert_equal("GET /report", slow["request"])
    assert_match(/config\.ru/, slow["location"])
    assert_match(%r{"path":"/report".*"stack":\["[^"]*config\.ru:1:in }, @admin.get("/slow.log").body)
    File.write(File.join(folder, "slow.log"), "#{"x" * 300_000}\nlast\n")
    assert_equal("last\n", @admin.get("/slow.log").body)
    File.delete(File.join(folder, "slow.log"))
    assert_match(/there is no file \S+slow\.log\. The next slow request creates it/, @admin.get("/slow.log").body)
  ensure
    FileUtils.rm_rf(folder)
  end

  def test_without_a_slow_log
    start
    answer = @admin.get("/slow")

    assert_equal("404", answer.code)
    assert_match(/slow_log is off: write slow_log 2/, answer.body)
    assert_equal([answer.code, answer.body], [@admin.get("/slow.log").code, @admin.get("/slow.log").body])
  end

  def test_requests_are_counted_one_by_one
    start
    30.times { @server.get("/") }
    @server.refork
    30.times { @server.get("/") }

    wait_until { @admin.metric('pando_requests_total{pool="web",method="GET",status="2xx"}') == 60 }
    assert_equal(60, @admin.metric('pando_request_duration_seconds_count{pool="web"}'))
    assert_equal(60, @admin.metric('pando_request_queue_seconds_bucket{pool="web",le="+Inf"}'))
  end

  # Both need what Ruby tells from 3.2 on: which thread waits for the interpreter lock.
  def test_garbage_collection_and_the_interpreter_lock
    start("threads 4\n", app: <<~RUBY)
      run lambda { |_env|
        4_000_000.times { |number| number.to_s } # makes garbage, and is longer than a thread keeps the lock
        GC.start
        [200, {}, ["hi"]]
      }
    RUBY
    Array.new(8) { Thread.new { 2.times { @server.get("/") } } }.each(&:join)

    wait_until { @admin.metric('pando_worker_gc_seconds_total{pool="web"}').to_f > 0.01 }
    return if RUBY_VERSION < "3.2"

    before = wait_until { @admin.metric('pando_worker_lock_wait_seconds_total{pool="web"}').to_f.nonzero? }
    @server.wait_for("worker.lost") { Process.kill("KILL", @server.workers.first.pid) }
    wait_until { @admin.metric('pando_workers_ready{pool="web"}') == 2 }
    assert_operator(@admin.metric('pando_worker_lock_wait_seconds_total{pool="web"}'), :>=, before)
  end

  def test_its_death_costs_no_request_and_it_is_back_soon
    start
    killed = []
    answers = under_requests(@server) do
      8.times do
        killed << (pid = wait_until { @admin.pid })
        died = Support::FairClock.now
        back = @server.wait_for("admin.ready") { Process.kill("KILL", pid) }
        assert_operator(Support::FairClock.now - died - back["seconds"], :<, BACK_WITHIN)
        assert_operator(back["seconds"], :<, STARTS_WITHIN)
        assert_equal("200", @admin.get("/livez").code)
      end
    end

    assert_equal([200], answers.uniq)
    assert_equal(killed, @server.events("admin.lost").map { |event| event["pid"] })
    assert_empty(@server.events("orphan.reaped"))
    wait_until { @admin.metric('pando_process_exits_total{role="admin",outcome="lost"}') == 8 }
  end

  # The app boots for longer than a command without `wait` is waited for.
  def test_an_event_that_comes_while_it_is_away_is_in_the_history
    start
    wait_until { @admin.json("/history.json")["known"].positive? }
    2.times do |round|
      worker = @server.workers.first.pid
      @server.wait_for("admin.ready") do
        Process.kill("KILL", @server.tree.titled("admin").first.pid)
        Process.kill("KILL", worker)
      end

      wait_until { events_of_the_past.tally.values_at("admin.lost", "worker.lost") == [round + 1] * 2 }
    end
  end

  def events_of_the_past = @admin.json("/history.json")["events"].map { |event| event["event"] }

  def test_pando_history_tells_what_memory_does_and_what_reforks_did
    start
    assert_equal("200", @admin.post("/refork").code)
    text = wait_until { history[/\AMemory of all processes .*/m] }

    assert_match(/^private, worker +[1-9]\d* +[1-9]\d* +-?\d+$/, text)
    assert_match(/^\d\d:\d\d:\d\d +refork to generation 1, from worker \d after \d+ requests .*pando refork$/, text)
    facts = JSON.parse(history("--format", "json"))
    assert_equal([2, 1], facts["samples"].last["pools"]["web"].values_at("workers", "generation"))
  end

  def history(*arguments)
    text, = Open3.capture2(*Support::Checkout.pando("history", "-c", "pando.rb", *arguments), chdir: @server.folder)
    text
  end

  def test_commands_need_the_token_and_answer_with_the_outcome
    start(app: "hold_while('hold'); run ->(_env) { [200, {}, []] }")
    assert_equal("401", @admin.post("/refork", token: nil).code)
    assert_equal("401", @admin.post("/refork", token: "#{@admin.token[..-2]}x").code)
    assert_equal("405", @admin.get("/refork", { "authorization" => "Bearer #{@admin.token}" }).code)
    assert_empty(@server.events("refork.started"))
    done = @admin.post("/refork")

    assert_equal(%w[200 ok], [done.code, JSON.parse(done.body)["outcome"]], done.body)
    assert_equal("there is no worker with pid 1 in slot 1", JSON.parse(@admin.post("/kill?slot=1&pid=1").body)["error"])
    refused = @admin.post("/scale?workers=0")
    assert_equal(%w[409 failed], [refused.code, JSON.parse(refused.body)["outcome"]])
    assert_equal("400", @admin.post("/scale?wrong=1").code)
    @server.write("hold", "")
    assert_equal("202", @admin.post("/reload?wait=0").code)
    @server.wait_for("reload.finished") { File.delete(File.join(@server.folder, "hold")) }
    assert_equal(0o600, File.stat(File.join(@server.folder, "control.sock.token")).mode & 0o777)
    refute_includes(@server.output + @admin.get("/status.json").body + @admin.metrics, @admin.token)
    assert_equal(1, @admin.metric('pando_reforks_total{pool="web",outcome="finished"}'))
  end

  def test_a_browser_cannot_be_made_to_ask
    start
    assert_equal("421", @admin.get("/status.json", { "host" => "evil.example" }).code)
    assert_equal("403", @admin.get("/status.json", { "origin" => "http://evil.example" }).code)
    assert_equal("403", @admin.post("/refork", { "origin" => "null" }).code)
    assert_equal("200", @admin.get("/status.json", { "origin" => "http://127.0.0.1:#{@port}" }).code)
    fields = @admin.get("/status.json").to_hash

    assert_equal(["no-store"], fields["cache-control"])
    assert_equal(["nosniff"], fields["x-content-type-options"])
  end

  def test_readiness_follows_the_server
    start("health \"/up\"\n")
    assert_equal("200", @admin.get("/readyz").code)
    assert_equal("202", @admin.post("/drain?wait=0").code)
    wait_until { @admin.get("/readyz").code == "503" }
    assert_equal("200", @admin.get("/livez").code)
    @admin.post("/drain?undo=1")

    wait_until { @admin.get("/readyz").code == "200" }
  end

  def test_events_are_followed_to_the_end
    start
    all = @admin.follow
    reforks = @admin.follow("?name=refork.")
    @server.refork
    @server.stop

    names = ->(text) { text.scan(/^data: (.*)$/).map { |(line)| JSON.parse(line)["event"] } }
    assert_equal(%w[refork.started refork.finished], names.call(reforks.read) - %w[refork.postponed])
    assert_empty(%w[refork.started generation.current monitor.stopping worker.exited] - names.call(all.read))
  end

  def test_slow_clients_and_many_connections_do_not_stop_it
    start
    silent = Array.new(100) { TCPSocket.new("127.0.0.1", @port).tap { |one| one.write("GET /metrics HT") } }
    request = "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"
    greedy = Array.new(30) { TCPSocket.new("127.0.0.1", @port).tap { |one| one.write(request) } }

    3.times { assert_equal("200", @admin.get("/livez").code) }
    assert_equal(1, @server.events("admin.ready").size)
  ensure
    [*silent, *greedy].each(&:close)
  end

  def test_it_ends_with_the_monitor
    start
    pid = @admin.pid
    Process.kill("KILL", @server.pid)

    wait_until { !File.exist?("/proc/#{pid}") || File.read("/proc/#{pid}/stat").include?(") Z ") }
  end

  def test_a_stop_does_not_wait_for_it
    start
    pid = @admin.pid
    Process.kill("STOP", pid)

    assert_predicate(@server.stop, :success?)
    refute_path_exists("/proc/#{pid}")
  end

  def test_one_that_stands_still_is_replaced
    start
    Process.kill("STOP", @admin.pid)
    lost = @server.wait_for("admin.lost")

    assert_equal("it stood still: signal KILL", lost["reason"])
    @server.wait_past("admin.ready", patience: 5)
  end

  def test_an_address_that_is_taken_stops_the_boot
    taken = TCPServer.new("127.0.0.1", 0)
    start(port: taken.addr[1], ready: false)

    assert_equal(1, @server.wait_for_exit.exitstatus)
    assert_match(/cannot listen on 127\.0\.0\.1:#{taken.addr[1]}: another process listens there/, @server.output)
  ensure
    taken&.close
  end

  def test_other_machines_may_read_no_more_than_metrics_and_health
    start(host: "0.0.0.0")

    codes = %w[/metrics /livez /readyz /status.json /events].map { |path| @admin.get(path).code }
    assert_equal(%w[200 200 200 401 401], codes)
    assert_equal("200", @admin.get("/status.json", { "authorization" => "Bearer #{@admin.token}" }).code)
    assert_equal("0.0.0.0:#{@port}", @server.wait_past("admin.exposed")["listen"])
  end

  def test_a_reload_adds_changes_and_removes_addresses
    start
    other = free_port
    reload("admin \"127.0.0.1:#{@port}\", token_file: \"secret\"\nadmin \"127.0.0.1:#{other}\"\n")
    @server.write("secret", "a token of our own\n".tr(" ", "-"))
    second = Support::AdminClient.new(@server, other)

    assert_equal("200", second.get("/livez").code)
    assert_equal("401", @admin.post("/quiet").code)
    assert_equal("409", @admin.post("/quiet", token: "a-token-of-our-own").code)
    @server.wait_for("reload.finished") { write("") && @server.signal("HUP") }
    wait_until { @admin.pid.nil? }
    wait_until { refused?(second) }
    assert_equal(200, @server.get("/").status)
    assert_empty(@server.events("admin.lost"))
  end

  def test_a_reload_to_an_address_that_is_taken_changes_nothing
    start
    taken = TCPServer.new("127.0.0.1", 0)
    write("admin \"127.0.0.1:#{taken.addr[1]}\"\n")
    failed = @server.wait_for("reload.failed") { @server.signal("HUP") }

    assert_match(/cannot listen on/, failed["reason"])
    assert_equal("200", @admin.get("/livez").code)
  ensure
    taken&.close
  end

  def test_an_upgrade_replaces_it_and_counts_go_on
    versions = Support::PandoVersions.new.add("1.0.1").link("1.0.1")
    start(code: versions.current)
    @server.refork
    before = @admin.pid
    seen = follow_events
    versions.add("1.0.2").link("1.0.2")
    @server.wait_for("admin.ready") { upgrade(versions) }

    refute_equal(before, @admin.pid)
    assert_includes(@admin.metrics, 'pando_build_info{version="1.0.2"')
    assert_equal(1, @admin.metric('pando_reforks_total{pool="web",outcome="finished"}'))
    assert_equal(1, @admin.metric('pando_upgrades_total{outcome="finished"}'))
    assert_empty(@server.events("admin.lost") + @server.events("orphan.reaped"))
    assert_predicate(@server.stop, :success?)
    assert_empty(%w[monitor.upgrading monitor.upgraded monitor.stopped] - seen.value)
  ensure
    versions&.remove
  end

  def test_under_pando_swarm
    @port = free_port
    server = swarm("count: 2", "control \"control.sock\"\nadmin \"127.0.0.1:#{@port}\"")
    @admin = Support::AdminClient.new(server, @port)
    order(server, "one", "0.01")
    wait_for_jobs(server, "done", %w[one])

    wait_until { @admin.metric('pando_jobs_total{pool="folder"}') == 1 }
    assert_equal(2, @admin.metric('pando_workers_ready{pool="folder"}'))
    value = wait_until { @admin.json("/history.json")["hour"].last }
    assert_equal(2, value["pools"]["folder"]["workers"])
    assert_equal("200", @admin.get("/readyz").code)
    assert_equal("200", @admin.post("/quiet").code)
  end

  def test_promtool_finds_no_fault
    need_promtool
    start
    @server.refork
    @server.wait_for_leavers # one that is told to leave counts as exited
    Process.kill("KILL", @server.workers.first.pid)
    wait_until { @admin.metric('pando_process_exits_total{role="worker",pool="web",outcome="lost"}') }
    wait_until { @admin.metric('pando_memory_pss_bytes{role="worker",pool="web"}') }

    assert_empty(assert_promtool("check", "metrics", stdin_data: @admin.metrics))
  end

  private

  # @return [Thread] the names of events until the server ends, as a client of the control socket hears of them
  def follow_events
    client = Pando::CLI::ControlClient.new(File.join(@server.folder, "control.sock"))
    told = Queue.new
    thread = Thread.new do
      names = []
      client.ask("events") { |word, pairs| word == "following" ? told << word : names << pairs["event"] }
      names
    end
    told.pop
    thread
  end

  # One that the kernel had accepted is reset.
  def refused?(admin)
    admin.get("/livez")
    false
  rescue Errno::ECONNREFUSED, Errno::ECONNRESET => e
    e.is_a?(Errno::ECONNREFUSED)
  end

  def write(lines) = @server.write("pando.rb", "log_format :json; rollout canary: false\n#{CONFIG}#{lines}")

  def reload(lines)
    write(lines)
    @server.wait_for("admin.ready") { @server.signal("HUP") }
  end

  def upgrade(versions)
    folder = versions.current
    Open3.capture3(RbConfig.ruby, "-W0", "-I", File.join(folder, "lib"), File.join(folder, "exe/pando"), "upgrade",
                   "-c", "pando.rb", chdir: @server.folder)
  end
end
