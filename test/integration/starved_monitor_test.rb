# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/servers"

# The monitor itself gets no descriptor from the kernel any more: nothing leaks, nobody stops serving, and when there
# are some again all is mended.
class StarvedMonitorTest < Minitest::Test
  include Support::Servers

  def setup
    skip("there is no prlimit") unless system("prlimit", "--version", out: File::NULL)
    super
  end

  def test_without_descriptors_dead_workers_wait
    server = serve(config: "workers 3\nrefork false")
    before = descriptors(server)
    limit = starve(server)
    failed = server.wait_for("spawn.failed", role: "worker") { kill(server.workers.first) }
    assert_match(/Too many open files/, failed["reason"])
    damped = server.wait_past("restart.throttled", role: "worker")
    assert_operator(damped["seconds"], :>, 0)
    assert_equal(200, server.get("/").status)
    assert_equal(2, server.workers.size)
    server.wait_for("worker.ready") { allow(server, limit) }

    assert_recovered(server, before)
  end

  def test_without_descriptors_a_dead_mold_waits
    server = serve(config: "workers 2\nrefork false")
    before = descriptors(server)
    limit = starve(server)
    server.wait_for("spawn.failed", role: "mold") { kill(server.mold) }
    assert_equal(200, server.get("/").status)
    server.wait_for("generation.current") { allow(server, limit) }

    assert_recovered(server, before)
  end

  # The control socket's queue would wake the monitor again and again.
  def test_who_asks_meanwhile_is_heard_later_and_the_monitor_sleeps
    server = serve(config: "workers 1\nrefork false\ncontrol 'control.sock'")
    limit = starve(server)
    client = UNIXSocket.new(File.join(server.folder, "control.sock"))
    server.wait_for("control.failed") { client.write("status\n") }
    spent = cpu(server)
    server.wait_for("control.failed")
    assert_operator(cpu(server) - spent, :<, 50, "ticks of CPU in about a second")
    allow(server, limit)

    assert_match(/\Aserver /, client.gets)
    client.close
    assert_predicate(server.stop, :success?)
  end

  private

  def kill(process) = Process.kill("KILL", process.pid)

  # It reads files now and then.
  def descriptors(server) = Array.new(5) { Dir.children("/proc/#{server.pid}/fd").size }.min

  # User and system time, in ticks (proc(5)).
  def cpu(server) = File.read("/proc/#{server.pid}/stat").rpartition(")").last.split[11, 2].sum(&:to_i)

  # Not one descriptor more than it has. A dead child's are closed before another is ordered, so their number is to be
  # forbidden as well.
  # @return [String] the limit that it had
  def starve(server)
    limit = prlimit(server, "--nofile", "--output=SOFT", "--noheadings").strip
    prlimit(server, "--nofile=3:")
    limit
  end

  def allow(server, limit) = prlimit(server, "--nofile=#{limit}:")

  def prlimit(server, *arguments)
    output, status = Open3.capture2e("prlimit", "--pid=#{server.pid}", *arguments)
    status.success? ? output : raise(output)
  end

  def assert_recovered(server, descriptors)
    wait_until(message: "the descriptors of before") { descriptors(server) == descriptors }
    assert_equal(200, server.get("/").status)
    server.wait_for("worker.ready") { kill(server.workers.first) } # once more, now that all is well
    assert_predicate(server.stop, :success?)
  end
end
