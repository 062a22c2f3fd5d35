# frozen_string_literal: true

require "test_helper"
require "support/servers"

# kill -9 of the monitor: what is at work may finish within its grace, all else ends at once, nothing stays.
class OrphansTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  GRACE = 6

  APP = <<~'RUBY'
    require "fiddle"
    C_SLEEP = Fiddle::Function.new(Fiddle::Handle::DEFAULT["sleep"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT)

    def ignore_everything
      sleep
    rescue Exception
      retry
    end

    ROUTES = {
      "/gate" => -> { hold_until("open") },
      "/endless" => -> { sleep },
      "/deaf" => -> { ignore_everything },
      "/stone" => -> { loop { C_SLEEP.call(1000) } }
    }.freeze

    run(lambda do |env|
      File.write("busy#{env["PATH_INFO"].tr("/", "-")}", Process.pid.to_s)
      ROUTES.fetch(env["PATH_INFO"], -> {}).call
      [200, {}, ["done"]]
    end)
  RUBY

  CONFIG = <<~RUBY.freeze
    workers 5
    refork :manual
    timeout 300, grace: #{GRACE}
    stop_timeout 1
    service(:patient) { |service| nil until service.wait(60) }
    service(:asleep) { |_service| sleep }
  RUBY

  def test_only_running_requests_outlive_the_monitor_and_only_for_their_grace
    server = serve(app: APP, config: CONFIG)
    server.refork
    %w[patient asleep].each { |name| server.wait_past("service.ready", name: name, generation: 1) }
    gate, *stuck = %w[/gate /endless /deaf /stone].map { |path| begin_request(server, path) }
    killed_at = kill_monitor(server)
    wait_for_processes(server, ["pando reactor", "pando service asleep", *["pando worker busy"] * 4])
    server.write("open", "")

    assert_equal("done", answer(gate))
    stuck.each { |request| assert_equal("nothing", answer(request)) }
    wait_for_processes(server, [])
    assert_operator(now - killed_at, :>=, GRACE)
    assert(wait_until { refused?(server) }, "somebody still holds the listener")
  end

  def test_a_server_that_boots
    server = serve(app: "File.write('boots', '')\nsleep", ready: false)
    wait_until { File.exist?(File.join(server.folder, "boots")) }
    kill_monitor(server)

    wait_for_processes(server, [])
  end

  def test_a_rollout_under_way
    server = serve(config: <<~RUBY)
      workers 2
      refork :manual
      after_worker_fork { |_, worker| sleep if worker.generation.positive? }
    RUBY
    server.wait_for("worker.spawning") { server.signal("USR2") }
    kill_monitor(server)

    wait_for_processes(server, [])
  end

  # The new process finds a dead link and a foster parent.
  def test_a_fork_under_way
    server = serve(app: <<~RUBY, config: "workers 1\nrefork :manual")
      Process.singleton_class.prepend(Module.new do
        def _fork
          super.tap do |pid|
            File.write("forked", "") if pid.zero? && File.exist?("gate")
            sleep 0.01 while pid.zero? && File.exist?("gate")
          end
        end
      end)
      #{Support::ServerProcess::DEFAULT_APP}
    RUBY
    server.write("gate", "")
    server.signal("USR2")
    wait_until { File.exist?(File.join(server.folder, "forked")) }
    kill_monitor(server)
    wait_for_processes(server, ["pando worker idle"]) # the new one has its forker's title yet
    File.delete(File.join(server.folder, "gate"))

    wait_for_processes(server, [])
  end

  def test_at_any_moment_of_a_rollout
    %w[refork.started mold.ready worker.spawning worker.ready worker.leaving].each do |moment|
      server = serve(config: "workers 2\nrefork :manual")
      server.wait_for(moment) { server.signal("USR2") }
      kill_monitor(server)

      wait_for_processes(server, [])
    end
  end

  def test_a_stopping_server
    server = serve(app: APP, config: "workers 2\ntimeout 300, grace: 1\nstop_timeout 60")
    stuck = begin_request(server, "/endless")
    server.wait_for("monitor.stopping") { server.signal("TERM") }
    kill_monitor(server)

    assert_equal("nothing", answer(stuck))
    wait_for_processes(server, [])
  end

  private

  # @return [Thread] whose value is the body, or "nothing" if the connection was closed without an answer
  def begin_request(server, path)
    thread = Thread.new do
      server.get(path).body
    rescue EOFError, SystemCallError
      "nothing"
    end
    wait_until { File.exist?(File.join(server.folder, "busy#{path.tr("/", "-")}")) }
    thread
  end

  # A process has no title any more before it has closed its last descriptor: until then clients are reset.
  def refused?(server)
    server.get("/")
    false
  rescue SystemCallError, EOFError => e
    e.is_a?(Errno::ECONNREFUSED)
  end

  def answer(request) = request.join(90)&.value

  # @return [Float] when
  def kill_monitor(server)
    now.tap { Process.kill("KILL", server.pid) }
  end

  # Waits until only processes of these titles live.
  def wait_for_processes(server, wanted)
    found = nil
    arrived = wait_until(message: -> { "#{wanted}, but there are #{found}" }) do
      found = server.processes.map { |process| process.title.sub(/ (\d+ )?gen \d+/, "") }.sort
      found == wanted
    end

    assert(arrived)
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
