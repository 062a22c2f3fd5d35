# frozen_string_literal: true

require "test_helper"
require "support/admin_client"
require "support/folder_jobs"
require "support/servers"

# Promise: health is answered by the reactor whatever the application does, and says whether requests are welcome.
class HealthTest < Minitest::Test
  include Support::Servers

  # Loads when the file "load" is there; /hold answers when "go" is.
  APP = <<~'RUBY'
    hold_until("load")
    run lambda { |env|
      hold_until("go") if env["PATH_INFO"] == "/hold"
      [200, {}, ["pid #{Process.pid} #{env["PATH_INFO"]}"]]
    }
  RUBY

  def start(config = "", ready: true, **options)
    @server = serve(app: APP, config: "workers 2\nhealth \"/up\", live: \"/live\"\n#{config}", ready: false, **options)
    return unless ready

    @server.write("load", "")
    @server.wait_until_current
  end

  def status(path = "/up") = @server.get(path).status
  def wait_for_status(expected, path = "/up") = wait_until { status(path) == expected }

  def test_from_the_boot_on
    start(ready: false)
    @server.wait_past("reactor.ready")
    assert_equal [503, 200], [status("/up"), status("/live")]
    early = Thread.new { @server.get("/early").status }
    @server.write("load", "")
    @server.wait_until_current

    wait_for_status(200)
    assert_equal [200, 200], [early.value, status("/live")]
  end

  def test_while_every_worker_is_busy_or_stands_still
    start
    wait_for_status(200)
    held = Array.new(3) { Thread.new { @server.get("/hold").status } }
    @server.wait_until_busy(2)
    @server.workers.each { |worker| Process.kill("STOP", worker.pid) }

    assert_equal [200, 200], [status("/up"), status("/live")]
    @server.workers.each { |worker| Process.kill("CONT", worker.pid) }
    @server.write("go", "")
    assert_equal [200] * 3, held.map(&:value)
  end

  def test_without_a_worker
    start("before_fork { raise \"no\" if File.exist?(\"barren\") }")
    wait_for_status(200)
    @server.write("barren", "")
    @server.wait_for("fork.failed") { @server.workers.each { |worker| Process.kill("KILL", worker.pid) } }
    wait_for_status(503)
    assert_equal 200, status("/live")
    FileUtils.rm(File.join(@server.folder, "barren"))

    wait_for_status(200)
  end

  # Job nodes serve nobody: here and at the admin address the web workers decide.
  def test_without_a_web_worker_beside_job_nodes
    admin = Support::AdminClient.new(nil, free_port)
    start("admin \"127.0.0.1:#{admin.port}\"\nrequire #{Support::FolderJobs::RUNNER.inspect}\n" \
          "node(:folder, count: 1) { FolderRunner.new }\nbefore_fork { raise \"no\" if File.exist?(\"barren\") }")
    @server.wait_past("admin.ready")
    @server.wait_past("generation.current", pool: "web")
    wait_until { status == 200 && admin.get("/readyz").code == "200" }
    @server.write("barren", "")
    @server.wait_for("fork.failed") { @server.workers.each { |worker| Process.kill("KILL", worker.pid) } }
    wait_for_status(503)

    wait_until { admin.get("/readyz").code == "503" }
    assert_equal([0, 1], admin.json("/status.json")["pools"].map { |pool| pool["ready"] })
    FileUtils.rm(File.join(@server.folder, "barren"))
    wait_until { status == 200 && admin.get("/readyz").code == "200" }
  end

  def test_a_new_reactor_knows
    start
    wait_for_status(200)
    @server.wait_for("reactor.ready") { Process.kill("KILL", @server.tree.titled("reactor").first.pid) }

    wait_until { status == 200 rescue false } # rubocop:disable Style/RescueModifier
  end

  def test_a_reload_that_fails_changes_nothing
    start
    wait_for_status(200)
    @server.write("config.ru", "raise 'no'")
    @server.wait_for("reload.failed") { @server.signal("HUP") }

    assert_equal 200, status
  end

  def test_off_by_default
    server = serve

    assert_match(%r{path=/up}, server.get("/up").body)
  end

  def test_not_without_a_reactor
    server = serve(config: "reactor false\nhealth \"/up\"", ready: false)

    assert_equal 2, server.wait_for_exit.exitstatus
    assert_match(/health needs the reactor, but the config says `reactor false`/, server.output)
  end

  def test_the_stop_of_a_server_that_never_came_up
    start(ready: false)
    @server.wait_past("reactor.ready")

    assert_equal 0, @server.stop.exitstatus
  end
end
