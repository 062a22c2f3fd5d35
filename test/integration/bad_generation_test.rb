# frozen_string_literal: true

require "test_helper"
require "support/servers"

# A generation that goes wrong on its way is discarded, whatever went wrong: the old one serves on, the log
# says why, and once the fault is gone the next refork succeeds.
class BadGenerationTest < Minitest::Test
  include Support::Servers

  # What the files `mold` and `worker` in the server's folder say is what befalls the next of them.
  CONFIG = <<~RUBY
    workers 2
    refork :manual
    spawn_timeout 3
    timeout 300

    befall = lambda do |role|
      case File.exist?(role) && File.read(role)
      when "raise" then raise IOError, "no connection"
      when "crash" then Process.kill(:KILL, Process.pid) && sleep
      when "segv" then Process.kill(:SEGV, Process.pid) && sleep
      when "exit 0" then exit!(0)
      when "leave" then exit
      when "hang" then sleep
      end
    end
    after_mold_fork { |*| befall.call("mold") }
    after_worker_fork { |*| befall.call("worker") }
  RUBY

  FAULTS = {
    "raise" => /_fork hook at .*pando\.rb:\d+ raised IOError: no connection/,
    "crash" => /signal KILL/,
    "segv" => /signal (SEGV|ABRT)/,
    "exit 0" => /status 0/,
    "leave" => /exit/,
    "hang" => /not ready in time/
  }.freeze

  FAULTS.each do |fault, reason|
    define_method(:"test_a_mold_with_the_fault_#{fault.tr(" ", "_")}") { assert_discarded("mold", fault, reason) }
    define_method(:"test_a_worker_with_the_fault_#{fault.tr(" ", "_")}") { assert_discarded("worker", fault, reason) }
  end

  # Each worker's child fails once as a mold; then they are asked again.
  def test_failures_do_not_use_up_the_workers
    server = serve(config: CONFIG)
    3.times { fail_once(server, "mold", "raise") }

    server.refork
  end

  def test_a_before_fork_hook_that_raises
    server = serve(config: <<~RUBY)
      workers 2
      refork :manual
      before_fork { |*| raise IOError, "cannot let go" if File.exist?("fault") }
    RUBY
    workers = pids(server.workers)
    server.write("fault", "")
    failed = server.wait_for("refork.refused") { server.signal("USR2") }

    assert_match(/before_fork hook at .*pando\.rb:4 raised IOError: cannot let go/, failed["reason"])
    assert_equal(failed["reason"], server.wait_past("generation.discarded")["reason"])
    assert_equal(workers, pids(server.workers), "the worker that could not be forked serves on")
    assert_equal([["refork.refused", "warn"]], server.complaints.map { |event| event.values_at("event", "level") })
    File.delete(File.join(server.folder, "fault"))
    server.refork
  end

  # The first worker of the new generation is on its way, the mold dies.
  def test_a_mold_killed_before_its_first_worker_is_ready
    server = serve(config: gated("true"))
    workers = pids(server.workers)
    answers = under_requests(server) do
      start_rollout(server) { wait_until_forked(server, "worker 0 gen 1") }
      kill_new_mold(server)
      open_gate(server)
    end

    assert_equal([200], answers.uniq)
    assert_old_generation(server, workers)
    server.refork
  end

  # One slot is served by the new generation already: it goes back to the old one.
  def test_a_mold_killed_after_its_first_worker_was_ready
    server = serve(config: gated("worker.slot.positive?"))
    workers = pids(server.workers)
    answers = under_requests(server) do
      start_rollout(server) { wait_until_forked(server, "worker 1 gen 1") }
      kill_new_mold(server)
      open_gate(server)
      server.wait_past("worker.ready", generation: 0, slot: 0)
    end

    assert_equal([200], answers.uniq)
    assert_old_generation(server, workers.last(1))
    server.refork
  end

  # The old mold dies while its successor is on its way: the rollout goes on.
  def test_an_old_mold_killed_during_a_rollout
    server = serve(config: gated("worker.slot.positive?"))
    answers = under_requests(server) do
      start_rollout(server) { server.wait_for("generation.rolling", generation: 1) }
      server.wait_for("mold.lost", generation: 0) { Process.kill("KILL", mold_pid(server, 0)) }
      server.wait_for("refork.finished") { open_gate(server) }
    end

    assert_equal([200], answers.uniq)
    assert_generation(server, 1)
    server.refork
  end

  # So may the worker that was promoted.
  def test_a_source_killed_during_a_rollout
    server = serve(config: gated("true"))
    start_rollout(server) { server.wait_for("worker.spawning", generation: 1) }
    source = server.events("refork.started").last["source"]
    server.wait_for("worker.lost", pid: source) { Process.kill("KILL", source) }

    assert_equal(200, server.get("/").status)
    server.wait_for("refork.finished") { open_gate(server) }
  end

  private

  def assert_discarded(role, fault, reason)
    server = serve(config: CONFIG)
    workers = pids(server.workers)
    answers = under_requests(server) { fail_once(server, role, fault) }
    discarded = server.events("generation.discarded").last

    assert_match(reason, discarded["reason"])
    assert_equal(1, discarded["generation"])
    assert_equal([200], answers.uniq)
    assert_equal(workers, pids(server.workers))
    server.refork
    assert_generation(server, server.events("refork.finished").last["generation"])
    assert_predicate(server.stop, :success?)
  end

  # From USR2 until the generation is discarded.
  def fail_once(server, role, fault)
    wait_until(message: "the backoff's end") do
      server.write(role, fault)
      asked = server.wait_for("refork.started", "refork.refused") { server.signal("USR2") }
      asked["event"] == "refork.started"
    end
    number = server.events("refork.started").last["generation"]
    server.wait_past("generation.discarded", generation: number)
    server.wait_past("mold.failed", "mold.exited", "mold.discarded", "mold.killed", generation: number)
  ensure
    File.delete(File.join(server.folder, role))
  end

  # Workers of a new generation wait in their hook until the gate is opened.
  def gated(condition)
    <<~RUBY
      workers 2
      refork :manual
      after_worker_fork { |_, worker| hold_while("gate") if #{condition} }
    RUBY
  end

  def start_rollout(server)
    server.write("gate", "")
    server.signal("USR2")
    yield
  end

  # It waits at the gate.
  def wait_until_forked(server, title)
    wait_until(message: title) { server.tree.titled("#{title} booting").any? }
  end

  def open_gate(server) = File.delete(File.join(server.folder, "gate"))

  # The first to be noticed may be the worker that it was about to fork.
  def kill_new_mold(server)
    mold = mold_pid(server, 1)
    server.wait_for("generation.discarded") { Process.kill("KILL", mold) }

    assert_match(/signal KILL/, server.wait_past("mold.lost", "mold.discarded", pid: mold)["reason"])
  end

  def mold_pid(server, generation)
    server.wait_past("mold.ready", generation: generation)["pid"]
  end

  # Full strength, and nobody of another generation.
  def assert_generation(server, number)
    wait_until(message: -> { "generation #{number}: #{server.processes}" }) do
      titles = server.processes.map(&:title).grep(/worker|mold/).map { |title| title[/gen.*/] }
      titles.size == 3 && titles.all? { |title| title.match?(/\Agen #{number}( idle)?\z/) }
    end
  end

  # The survivors are the same as before.
  def assert_old_generation(server, survivors)
    assert_generation(server, 0)
    assert_empty(survivors - pids(server.workers))
  end

  def pids(processes) = processes.sort_by(&:title).map(&:pid)
end
