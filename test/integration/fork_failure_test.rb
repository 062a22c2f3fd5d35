# frozen_string_literal: true

require "test_helper"
require "time"
require "support/limited_user"
require "support/servers"

# The kernel refuses to fork, as it does in a container that has used up its processes.
class ForkFailureTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  def setup
    @user = Support::LimitedUser.for(self)
  end

  def test_a_worker_that_cannot_be_replaced_yet
    server = serve(config: "workers 2\nrefork :manual", wrapper: @user.wrapper)
    mold = server.mold.pid
    failures = without_forks(server, -> { kill_worker(server) }) do
      Array.new(4) { server.wait_for("fork.failed", role: "worker") }
    end

    failures.each { |event| assert_match(/Resource temporarily unavailable/, event["reason"]) }
    assert_backoff(failures)
    assert_equal(mold, server.mold.pid, "it is not to blame")
    ready = server.events("worker.ready").size
    heal(server) { wait_until(message: "a new worker") { server.events("worker.ready").size > ready } }
  end

  def test_a_refork_that_is_not_possible_now
    server = serve(config: "workers 1\nrefork :manual", wrapper: @user.wrapper)
    worker = server.workers.map(&:pid)
    without_forks(server) do
      server.wait_for("fork.failed", role: "mold") { server.signal("USR2") }

      assert_match(/temporarily unavailable/, server.wait_past("refork.refused")["reason"])
      assert_equal(["fork.failed"], server.complaints.map { |event| event["event"] }, "it is one alarm")
    end
    assert_empty(server.events("generation.discarded"))

    assert_equal(worker, server.workers.map(&:pid))
    heal(server) { server.refork }
  end

  # The new mold is there, its workers are not to be had.
  def test_a_rollout_that_gets_stuck
    server = serve(config: <<~RUBY, wrapper: @user.wrapper)
      workers 2
      refork :manual
      after_mold_fork { |_, mold| hold_until("go") if mold.generation.positive? }
    RUBY
    workers = server.workers.map(&:pid)
    server.wait_for("refork.started") { server.signal("USR2") }
    wait_until { server.tree.titled("mold gen 1").any? }
    without_forks(server) do
      server.wait_for("fork.failed", role: "worker", generation: 1) { server.write("go", "") }
      6.times { server.wait_for("fork.failed", role: "worker", generation: 1) }
      assert_equal(workers.sort, server.workers.map(&:pid).sort)
    end

    heal(server) { server.wait_past("refork.finished", generation: 1) }
  end

  def test_a_mold_that_cannot_be_replaced_yet
    server = serve(config: "workers 2\nrefork :manual", wrapper: @user.wrapper)
    without_forks(server) do
      Process.kill("KILL", server.mold.pid)
      wait_until(message: "two that cannot fork it") { failed_molds(server).size > 1 }
    end

    heal(server) { server.wait_for("generation.current") }
  end

  # Nor can the monitor boot a clean image.
  def test_a_cold_boot_that_is_not_possible_now
    server = serve(config: "workers 2\nrefork false", wrapper: @user.wrapper)
    failures = without_forks(server) do
      Process.kill("KILL", server.mold.pid)
      Array.new(3) { server.wait_for("spawn.failed", role: "mold") }
    end

    assert_backoff(failures)
    heal(server) { server.wait_for("generation.current") }
  end

  # The kernel changes its mind after it was asked: Ruby's fork would now try for ever.
  def test_a_fork_that_hangs
    server = serve(app: <<~RUBY, config: "workers 2\nrefork :manual\nspawn_timeout 5", wrapper: @user.wrapper)
      Process.singleton_class.prepend(Module.new do
        def _fork
          Process.setrlimit(:NPROC, 1, Process.getrlimit(:NPROC).last) if File.exist?("hang-\#{Process.pid}")
          super
        end
      end)
      #{Support::ServerProcess::DEFAULT_APP}
    RUBY
    mold = server.mold.pid
    server.write("hang-#{mold}", "")
    kill_worker(server)
    answers = under_requests(server) do
      assert_match(/did not fork/, server.wait_past("mold.killed", pid: mold)["reason"])
      server.wait_past("worker.ready", generation: 1)
    end

    assert_equal([200], answers.uniq)
    assert_predicate(server.stop, :success?)
  end

  private

  # @param first [Proc] what is done before the first request
  # @return what the block returns; the server answers meanwhile
  def without_forks(server, first = -> {})
    result = nil
    @user.forbid_forks(server.processes)
    first.call
    answers = under_requests(server) { result = yield }

    assert_empty(answers - [200])
    refute_empty(answers)
    result
  end

  def heal(server)
    @user.allow_forks(server.processes)
    yield
    assert_equal(200, server.get("/").status)
    assert_predicate(server.stop, :success?)
  end

  def failed_molds(server) = server.events("fork.failed").select { |event| event["role"] == "mold" }

  def kill_worker(server)
    server.wait_for("worker.lost") { Process.kill("KILL", server.workers.first.pid) }
  end

  # Each wait is about double the last; what the clock shows can only be longer.
  def assert_backoff(failures)
    times = failures.map { |event| Time.parse(event["time"]) }
    waits = times.each_cons(2).map { |first, second| second - first }

    waits.zip([0.25, 0.5, 1.0]) { |wait, least| assert_operator(wait, :>=, least - 0.02, waits.inspect) }
  end
end
