# frozen_string_literal: true

require "test_helper"
require "support/servers"

# kill -9 of the mold: nobody else may notice, and the next death is mended from its successor.
class MoldDeathTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  def test_a_worker_is_promoted_and_no_worker_is_replaced
    server = serve(config: "workers 3\nrefork :manual")
    3.times do
      healed = kill_mold(server)

      assert_equal("heal", healed["purpose"])
      assert_includes(pids(server.workers), healed["source"])
    end

    assert_heals_workers(server, generation: 3)
    assert_empty(server.events("refork.finished"), "no refork, only its mold is new")
  end

  # The most served one is the warmest.
  def test_the_most_served_worker_is_promoted
    server = serve(config: "workers 2\nrefork :manual")
    served = Array.new(9) { server.get("/").body[/pid=(\d+)/, 1].to_i }

    wait_until { server.workers.all? { |worker| worker.title.end_with?("idle") } } # and so have counted
    healed = server.wait_for("generation.current") { Process.kill("KILL", server.mold.pid) }

    assert_equal(served.tally.max_by(&:last).first, healed["source"])
  end

  def test_with_fork_unsafe_workers_a_clean_image_is_booted
    server = serve(config: "workers 2\nrefork :manual\nafter_worker_fork { |*| Pando.no_longer_fork_safe! }")

    assert_cold_boot(server)
    refused = server.wait_for("refork.refused") { server.signal("USR2") }

    assert_match(/\Ano worker is fit to become a mold: .* unsafe to fork/, refused["reason"])
  end

  def test_without_reforking_a_clean_image_is_booted
    server = serve(config: "workers 2\nrefork false")

    assert_cold_boot(server)
    server.wait_for("refork.refused", reason: "reforking is switched off") { server.signal("USR2") }
  end

  def test_fork_unsafe_workers_are_passed_over
    server = serve(config: <<~RUBY)
      workers 3
      refork :manual
      after_worker_fork { |_, worker| Pando.no_longer_fork_safe! unless worker.slot == 2 }
    RUBY

    assert_equal(2, kill_mold(server)["source_slot"])
  end

  # The files have changed and the app boots no more: those that live serve on, and a boot is tried again.
  def test_when_the_app_boots_no_more_the_workers_stay
    server = serve(config: "workers 2\nrefork false")
    workers = pids(server.workers)
    server.write("config.ru", "raise 'half a deployment'")
    seconds = under_fire(server) { four_failures(server) }

    assert_equal(seconds.sort.uniq, seconds, "each wait is longer than the last")
    assert_equal(workers, pids(server.workers))
    assert_includes(server.events("mold.failed").last["backtrace"].join, "config.ru:1:in")

    server.wait_for("generation.current") { server.write("config.ru", Support::ServerProcess::DEFAULT_APP) }
    assert_equal(workers, pids(server.workers))
    assert_heals_workers(server)
  end

  # Nobody can take the dead worker's place yet; once there is a mold, somebody does.
  def test_a_worker_that_dies_without_a_mold_is_replaced_later
    server = serve(config: "workers 2\nrefork false")
    server.write("config.ru", "raise 'half a deployment'")
    server.wait_for("generation.discarded") { Process.kill("KILL", server.mold.pid) }
    server.wait_for("worker.lost") { Process.kill("KILL", server.workers.first.pid) }

    assert_equal(200, server.get("/").status)
    server.wait_for("worker.ready") { server.write("config.ru", Support::ServerProcess::DEFAULT_APP) }
  end

  # All at once: mold and workers. A clean image brings everything back.
  def test_everybody_but_the_monitor
    server = serve(config: "workers 2\nrefork :manual")
    server.wait_for("generation.current") { kill_all_but_the_monitor(server) }

    assert_equal(200, server.get("/").status)
    assert_heals_workers(server)
  end

  # No count of failures ends it: the next deployment may be whole.
  def test_with_no_worker_left_and_no_boot_it_goes_on_trying
    server = serve(config: "workers 1\nrefork false")
    server.write("config.ru", "raise 'half a deployment'")
    kill_all_but_the_monitor(server)
    wait_until { server.events("mold.failed").size > 4 }
    server.wait_for("generation.current") { server.write("config.ru", Support::ServerProcess::DEFAULT_APP) }

    assert_equal(200, server.get("/").status)
    assert_equal(1, server.events("server.failing").size)
  end

  # The end is told once.
  def test_with_no_worker_left_and_no_boot_the_server_ends_if_it_is_to_give_up
    server = serve(config: "workers 1\nrefork false\ngive_up after: 1")
    server.write("config.ru", "raise 'half a deployment'")
    kill_all_but_the_monitor(server)

    assert_equal(1, server.wait_for_exit.exitstatus)
    assert_match(/^pando could not start or go on serving: .*half a deployment/, server.output)
  end

  private

  def kill_all_but_the_monitor(server)
    server.tree.children.each { |child| Process.kill("KILL", child.pid) }
  end

  # @return [Hash] the new generation, once it is current
  def kill_mold(server)
    workers = pids(server.workers)
    healed = under_fire(server) do
      server.wait_for("generation.current") { Process.kill("KILL", server.mold.pid) }
    end

    assert_equal(workers, pids(server.workers))
    assert_equal(healed["pid"], server.mold.pid)
    healed
  end

  def assert_cold_boot(server)
    healed = kill_mold(server)

    assert_equal("heal", healed["purpose"])
    assert_nil(healed["source"])
    assert_heals_workers(server)
  end

  # @return what the block returns; all requests meanwhile were answered
  def under_fire(server)
    result = nil
    answers = under_requests(server) { result = yield }

    assert_equal([200], answers.uniq)
    result
  end

  def assert_heals_workers(server, **where)
    victim = server.workers.first.pid
    server.wait_for("worker.ready", **where) { Process.kill("KILL", victim) }

    refute_includes(pids(server.workers), victim)
    assert_equal(200, server.get("/").status)
  end

  # @return [Array<Float>] what is waited after each
  def four_failures(server)
    Process.kill("KILL", server.mold.pid)
    Array.new(4) { server.wait_for("refork.postponed")["seconds"] }
  end

  def pids(processes) = processes.map(&:pid).sort
end
