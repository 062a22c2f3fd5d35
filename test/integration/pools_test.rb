# frozen_string_literal: true

require "test_helper"
require "support/toy_cluster"

# Several kinds of worker in one cluster, each with a lineage of molds of its own.
class PoolsTest < Minitest::Test
  def teardown
    @toy&.kill
    super
  end

  def test_each_has_its_own_generations_and_number_of_workers
    toy("alpha" => 2, "beta" => 1)
    outcome, said = @toy.ask("refork", pool: "beta")

    assert_equal("ok", outcome, said)
    assert_match(/\Abeta: every worker runs generation 1,/, said["text"])
    assert_equal(%w[0 0], generations("alpha"))
    assert_equal(%w[1], generations("beta"))
    @toy.wait_past("worker.exited", pool: "beta", generation: 0)
    assert_match(/\Aalpha: every worker runs generation 1,.*; beta: every worker runs generation 2,/, ask("refork"))
    assert_equal("beta: 3 workers are ready", ask("scale", pool: "beta", workers: 3))
    assert_equal(%w[1 1], generations("alpha"))
    assert_equal("alpha: 1 worker is ready", ask("scale", workers: 1))
    assert_equal([%w[1], %w[2 2 2]], [generations("alpha"), generations("beta")])
    assert_equal("there is no pool gamma, but alpha, beta", @toy.ask("refork", pool: "gamma").last["reason"])
    titles = @toy.processes.map(&:title).grep(/mold/).sort
    assert_equal(["pando mold alpha gen 1", "pando mold beta gen 2"], titles)
    assert_predicate(@toy.stop, :success?)
    assert_empty(@toy.complaints.reject { |event| event["event"] == "refork.refused" })
  end

  def test_the_death_of_a_mold_concerns_its_own_pool
    toy("alpha" => 1, "beta" => 1)
    @toy.wait_for("generation.current", pool: "beta", purpose: "heal") { kill("mold", "beta") }
    @toy.wait_for("worker.ready", pool: "beta") { kill("worker", "beta") }

    assert_equal(%w[0 1], %w[alpha beta].map { |name| mold(name)["generation"] })
    assert_equal([%w[0], %w[1]], [generations("alpha"), generations("beta")])
    assert_empty(@toy.events("generation.booting").select { |event| event["pool"] == "alpha" }.drop(1))
  end

  def test_a_pool_that_cannot_boot_ends_the_start
    @toy = Support::ToyCluster.new({ "alpha" => 1, "beta" => 1 }, files: { "beta.bad" => "" })
    status = @toy.wait_for_exit

    assert_equal(1, status.exitstatus)
    assert_match(/could not start or go on serving: beta is bad/, @toy.output)
    assert_equal("beta: beta is bad (RuntimeError): status 1", @toy.events("monitor.stopping").first["reason"])
  end

  def test_a_reload_is_of_all_pools_or_of_none
    toy("alpha" => 1, "beta" => 1)
    @toy.write("beta.bad", "")
    outcome, said = @toy.ask("reload")

    assert_equal(["failed", "beta: beta is bad (RuntimeError): status 1"], [outcome, said["reason"]])
    @toy.wait_past("generation.discarded", pool: "alpha", generation: 1)
    assert_equal([%w[0], %w[0]], [generations("alpha"), generations("beta")])
    File.delete(File.join(@toy.folder, "beta.bad"))
    @toy.write("beta.sick", "")

    assert_equal("failed", @toy.ask("reload").first)
    assert_equal([%w[0], %w[0]], [generations("alpha"), generations("beta")])
    File.delete(File.join(@toy.folder, "beta.sick"))
    @toy.pools = { "alpha" => 2, "beta" => 2 }

    assert_match(/new release/, ask("reload"))
    @toy.wait_past("worker.ready", pool: "beta", slot: 1)
    assert_match(/[2-9]/, generations("beta").first)
  end

  def test_an_upgrade_carries_all_pools_and_may_bring_another
    toy("alpha" => 1, "beta" => 2)
    ask("refork", pool: "beta")
    ask("scale", pool: "beta", workers: 3)
    before = @toy.workers.map(&:pid).sort
    @toy.pools = { "alpha" => 1, "gamma" => 1, "beta" => 2 }

    assert_match(/\Athe monitor runs Pando/, ask("upgrade"))
    @toy.wait_past("generation.current", pool: "gamma")
    assert_equal([%w[0], %w[1 1 1], %w[0]], %w[alpha beta gamma].map { |name| generations(name) })
    assert_empty(before - @toy.workers.map(&:pid))
    ask("refork")
    assert_equal([%w[1], %w[2 2 2], %w[1]], %w[alpha beta gamma].map { |name| generations(name) })
    @toy.pools = { "alpha" => 1, "beta" => 2 }
    outcome, said = @toy.ask("upgrade")

    assert_equal("failed", outcome)
    assert_match(/the server has alpha, gamma, beta, and the configuration alpha, beta/, said["reason"])
    assert_predicate(@toy.stop, :success?)
  end

  private

  def toy(pools) = @toy = Support::ToyCluster.start(pools)
  def ask(...) = @toy.ask(...).then { |outcome, said| outcome == "ok" ? said["text"] : flunk(said["reason"]) }
  def generations(pool) = @toy.children("worker", pool).map { |child| child["generation"] }
  def mold(pool) = @toy.children("mold", pool).first

  def kill(role, pool) = Process.kill(:KILL, Integer(@toy.children(role, pool).first["pid"]))
end
