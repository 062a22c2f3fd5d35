# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/servers"

# `mold :release`: the mold is gone while its workers serve, and a worker that needs one gets one.
class ReleasedMoldTest < Minitest::Test
  include Support::Servers

  CONFIG = "workers 3\nrefork :manual\nmold :release\nrollout canary: false\ncontrol 'control.sock'"
  PANDO = File.expand_path("../../exe/pando", __dir__)
  LIB = File.expand_path("../../lib", __dir__)

  # It takes a while for a mold to go: they all wait at the same time.
  def test_whoever_needs_one_has_one
    servers = Array.new(4) { serve(config: CONFIG) }
    servers.each do |server|
      server.wait_past("mold.released", generation: 0)
      assert_nil(server.mold)
    end
    %i[a_worker_dies_after_an_upgrade a_reload_falls_back_to_one a_refork_needs_none all_workers_die]
      .zip(servers) { |scenario, server| send(scenario, @server = server) }
  end

  private

  def command(word)
    Open3.capture2e(RbConfig.ruby, "-I", LIB, PANDO, word, "-c", "pando.rb", chdir: @server.folder)
  end

  # Neither the upgrade nor the worker's death costs anybody else a request, and nobody else is replaced.
  def a_worker_dies_after_an_upgrade(server)
    answers = under_requests(server) do
      said, status = command("upgrade")
      assert_predicate(status, :success?, said)
      assert_match(/its mold was released; it runs #{Regexp.escape(server.folder)}$/, command("status").first)
      dead, *others = pids(server.workers)
      replaced = server.wait_for("worker.ready") { Process.kill("KILL", dead) }

      assert_equal(others, pids(server.workers) - [replaced["pid"]])
      assert_includes(others, server.events("generation.booting").last["source"])
    end

    assert_operator(answers.count { |status| status != 200 }, :<=, 1, "the request inside the dead one")
  end

  def a_reload_falls_back_to_one(server)
    answers = under_requests(server) { server.wait_for("reload.finished") { server.signal("HUP") } }

    assert_equal([200], answers.uniq)
    assert_equal(%w[boot heal reload], server.events("generation.current").map { |event| event["purpose"] })
  end

  def a_refork_needs_none(server)
    answers = under_requests(server) { server.wait_for("refork.finished") { server.signal("USR2") } }

    assert_equal([200], answers.uniq)
    assert_equal(%w[boot refork], server.events("generation.current").map { |event| event["purpose"] })
  end

  # A clean image is booted.
  def all_workers_die(server)
    healed = server.wait_for("generation.current") { Process.kill("KILL", *pids(server.workers)) }

    assert_equal(["heal", nil], healed.values_at("purpose", "source"))
    assert_equal(200, server.get("/").status)
  end

  def pids(processes) = processes.map(&:pid).sort
end
