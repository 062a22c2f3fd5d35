# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/servers"

# Promise: a pool has workers, a queue and limits of its own for some paths. What happens there does not concern the
# other paths, and the application is loaded once for all.
class PathPoolsTest < Minitest::Test
  include Support::Servers

  APP = <<~'RUBY'
    File.write("loaded", "once\n", mode: "a")
    run lambda { |env|
      File.read(File.join(__dir__, env["QUERY_STRING"])) if env["PATH_INFO"].end_with?("/held")
      sleep if env["PATH_INFO"].end_with?("/late")
      Process.kill("KILL", Process.pid) if env["PATH_INFO"].end_with?("/die")
      [200, {}, [Process.pid.to_s]]
    }
  RUBY
  POOL = 'pool :reports, paths: ["/reports"]'

  # One slow endpoint no longer starves the others.
  def test_requests_for_a_busy_pool_wait_and_others_do_not
    start("workers 1\n#{POOL}, workers: 1, max_queue: 1")
    hold("/reports/held") do
      waiting = Thread.new { @server.get("/reports") }
      wait_until(message: -> { status }) { status.match?(/reports: .*, 1 request queued/) }
      others = Array.new(3) { @server.get("/") }
      assert_equal([[200], [pids("worker")]], [others.map(&:status).uniq, [others.map(&:body).uniq]])
      assert_equal(503, @server.get("/reports").status)
      shed = @server.wait_past("requests.shed").values_at("pool", "reason", "waiting", "busy")
      assert_equal(["reports", "max_queue (1)", 1, "GET /reports/held"], shed)
      waiting
    end => waiting

    assert_equal([200, pids("reports").first], [waiting.value.status, waiting.value.body])
    assert_equal(1, File.readlines(File.join(@server.folder, "loaded")).size)
  end

  def test_each_has_its_own_timeout_and_threads
    start("workers 1\ntimeout 0.5, grace: 20\n#{POOL}, workers: 1, timeout: 60, threads: 2")
    hold("/reports/held") do
      assert_equal(504, @server.get("/late").status)
      assert_equal(pids("reports").first, @server.get("/reports").body)
    end

    assert_match(/\Apando .*: 2 of 2 workers ready.*^reports: 1 of 1 worker with 2 threads each ready/m, status)
    assert_equal(["/late"], @server.events("request.timed_out").map { |event| event["path"] })
  end

  def test_no_more_workers_than_the_reactor_has_lanes_for
    start("workers 1\n#{POOL}, threads: 64")

    refused = [pando("scale", "reports", "15"), pando("scale", "896")]
    assert_match(/reports can have 1 to 14 workers with 64 threads each: .* need 2 /, refused.first)
    assert_match(/web can have 1 to 895 workers: .* need 128 /, refused.last)
    assert_empty(@server.events("workers.scaled"))
  end

  def test_a_reload_names_what_waits_for_a_restart
    start("workers 1\n#{POOL}, workers: 1, max_queue: 5")
    file = File.join(@server.folder, "pando.rb")
    File.write(file, File.read(file).sub('"/reports"', '"/reports", "/more"').sub("max_queue: 5", "max_queue: 6"))

    event = @server.wait_for("reload.incomplete") { @server.signal("HUP") }
    assert_equal("paths: of pool reports, max_queue: of pool reports", event["settings"])
  end

  def test_a_death_in_one_pool_does_not_concern_the_other
    start("workers 1\n#{POOL}, workers: 1")
    others = pids("worker")
    lost = @server.wait_for("worker.lost") { assert_equal(502, @server.request("POST", "/reports/die").status) }

    assert_equal(%w[reports 0], [lost["pool"], lost["slot"].to_s])
    assert_equal(200, @server.get("/reports").status)
    @server.wait_for("generation.current", pool: "reports") { Process.kill("KILL", mold("reports")) }
    assert_equal([others, 200], [pids("worker"), @server.get("/reports").status])
    @server.wait_for("reactor.ready") { Process.kill("KILL", @server.tree.titled("reactor").first.pid) }
    assert_equal([pids("reports").first, others.first], [@server.get("/reports").body, @server.get("/").body])
  end

  # It boots by itself then: what the first pool has is a reforked mold.
  def test_a_pool_whose_mold_and_worker_died_after_a_refork_of_the_others
    start("workers 1\nrefork :manual\n#{POOL}, workers: 1, threads: 8, refork: false")
    @server.wait_for("refork.finished", pool: "web") { assert_match(/\Aok|every worker runs/, pando("refork")) }
    @server.wait_for("generation.current", pool: "reports") do
      Process.kill("KILL", mold("reports"), Integer(pids("reports").first))
    end

    assert_equal([200, pids("reports").first], @server.get("/reports").then { |answer| [answer.status, answer.body] })
    assert_empty(@server.events("mold.failed"))
  end

  # The mold of a pool is forked from the first one's, and leaves the heap that the two share as it is.
  def test_the_application_is_in_memory_once
    app = "KEPT = Array.new(400_000) { |n| \"text \#{n}\" * 3 }\n#{APP}" # 40 MiB
    start("workers 1\n#{POOL}, workers: 1", app: app)
    several = anonymous_kib
    @server.stop
    start("workers 1", app: app)

    assert_operator(several, :<, anonymous_kib * 1.6)
  end

  # The others refork without it; a reload is for all.
  def test_reforks_and_reloads_under_load
    start("workers 2\nrefork :manual\n#{POOL}, workers: 1, refork: false")
    stayed = pids("reports")
    loads = ["/", "/reports/"].map do |prefix|
      Thread.new { Array.new(400) { |number| @server.get("#{prefix}#{number}").status } }
    end
    @server.wait_for("refork.finished", pool: "web") { pando("refork", "web") }
    assert_equal(stayed, pids("reports"))
    @server.wait_for("reload.finished", "reload.failed") { @server.signal("HUP") }

    assert_equal([200], loads.flat_map(&:value).uniq)
    refute_equal(stayed, pids("reports"))
    assert_empty(@server.events("reload.failed"))
  end

  def test_pools_outlive_an_upgrade_of_the_monitor
    start("workers 1\n#{POOL}, workers: 1")
    before = pids("worker") + pids("reports")
    @server.wait_for("monitor.upgraded") { pando("upgrade") }

    assert_equal(before, pids("worker") + pids("reports"))
    assert_equal(before, ["/", "/reports"].map { |path| @server.get(path).body })
    @server.write("pando.rb", File.read(File.join(@server.folder, "pando.rb")).sub('"/reports"', '"/exports"'))
    assert_match(/the pools or their paths have changed: that takes a restart/, pando("upgrade"))
    assert_equal(before.last, @server.get("/reports").body)
  end

  private

  def start(config, app: APP)
    @server = serve(app: app, config: "control \"p.sock\"\n#{config}")
    @server.wait_past("server.ready") # all pools
  end

  def pids(role) = @server.nodes(role).map { |process| process.pid.to_s }
  def anonymous_kib = @server.tree.children.sum(&:anonymous_pss_kib)
  def mold(pool) = @server.tree.titled("mold #{pool}").first.pid

  # Has a request that is answered only after the block.
  # @return [Object] what the block returns
  def hold(path)
    File.mkfifo(fifo = File.join(@server.folder, "fifo"))
    held = Thread.new { @server.get("#{path}?fifo").status }
    wait_until(message: -> { status }) { status.match?(/busy .*GET #{path}/) }
    yield.tap do
      File.write(fifo, "on")
      assert_equal(200, held.value)
    end
  end

  def status = pando("status")

  def pando(*words)
    out, = Open3.capture2e(*Support::Checkout.pando(*words, "-c", "pando.rb"), chdir: @server.folder)
    out
  end
end
