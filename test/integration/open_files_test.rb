# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/pando_versions"
require "support/servers"

# Promise: the usual soft limit of open files, 1024, bounds the application's processes only. The monitor has three
# descriptors for each thread of each worker, and needs more.
class OpenFilesTest < Minitest::Test
  include Support::Servers

  SOFT = 64
  LIMITS = [SOFT, Process.getrlimit(:NOFILE).last].freeze
  APP = 'run ->(_env) { [200, {}, [Process.getrlimit(:NOFILE).join(" ")]] }'
  CONFIG = "workers 4\nthreads 8\nrefork :manual\ncontrol \"control.sock\""

  def setup
    skip("there is no prlimit") unless system("prlimit", "--version", out: File::NULL)
    super
  end

  def test_the_monitor_may_have_more_than_the_application
    server = start
    assert_operator(descriptors(server), :>, SOFT)
    assert_limits(server)
    server.refork
    assert_limits(server)
    server.wait_for("reload.finished", "reload.failed") { server.signal("HUP") }

    assert_limits(server)
    assert_empty(server.events("spawn.failed"))
  end

  def test_after_an_upgrade
    versions = Support::PandoVersions.new.add("1.0.1").link("1.0.1")
    server = start(code: versions.current)
    versions.add("1.0.2").link("1.0.2")
    server.wait_for("monitor.upgraded", "upgrade.failed") { upgrade(server, versions.current) }
    killed = server.workers.first.pid
    server.wait_for("worker.ready") { Process.kill("KILL", killed) }
    server.wait_for("reload.finished", "reload.failed") { server.signal("HUP") }

    assert_operator(descriptors(server), :>, SOFT)
    assert_limits(server)
    assert_empty(server.events("spawn.failed"))
  ensure
    versions&.remove
  end

  # The hard limit is for everybody.
  def test_a_hard_limit_that_is_too_low_is_named
    server = start
    failed = server.wait_for("spawn.failed", role: "worker") do
      assert(system("prlimit", "--pid=#{server.pid}", "--nofile=20:20"))
      Process.kill("KILL", server.workers.first.pid)
    end

    assert_match(/Too many open files.*: the monitor may have 20 \(raise `ulimit -Hn`, or LimitNOFILE= in/,
                 failed["reason"])
  end

  private

  def start(**options)
    serve(app: APP, config: CONFIG, wrapper: ["prlimit", "--nofile=#{SOFT}:"], **options)
  end

  def assert_limits(server) = assert_equal(LIMITS.join(" "), server.get("/").body)

  def descriptors(server) = Dir.children("/proc/#{server.pid}/fd").size

  def upgrade(server, code)
    output, status = Open3.capture2e(RbConfig.ruby, "-W0", "-I", File.join(code, "lib"), File.join(code, "exe/pando"),
                                     "upgrade", "-c", "pando.rb", chdir: server.folder)
    assert_predicate(status, :success?, output)
  end
end
