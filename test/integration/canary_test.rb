# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/servers"

# A new generation proves itself before it replaces the old one, and for a while afterwards.
class CanaryProofTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  APP = <<~RUBY
    run lambda { |env|
      raise IOError, "poisoned" if File.exist?("poison") && $generation.to_i >= File.read("poison").to_i
      status = env["PATH_INFO"] == "/up" && File.exist?("sick") ? 503 : 200
      [status, {}, [$generation.to_s]]
    }
  RUBY

  HOOKS = "after_worker_fork { |_, worker| $generation = worker.generation }\n"

  # @param canary [String] the terms
  def config(canary = "{ requests: 20, seconds: 0.3, longest: 20 }", more = "")
    "workers 2\nrefork :manual, failures: 2\nrollout canary: #{canary}\n#{HOOKS}#{more}\n"
  end

  [true, false].each do |reactor|
    where = reactor ? "behind_the_reactor" : "in_direct_mode"

    define_method(:"test_the_canary_gets_its_share_#{where}") do
      server = serve(app: APP, config: config("{ requests: 40, seconds: 0.3, longest: 600 }", "reactor #{reactor}"))
      answers = under_requests(server) { server.refork }

      assert_equal [200], answers.uniq
      assert_operator server.events("canary.passed").last["requests"], :>=, 40
    end

    define_method(:"test_a_bad_canary_replaces_nobody_#{where}") do
      server = serve(app: APP, config: config("{ requests: 20, seconds: 0.3, longest: 600 }", "reactor #{reactor}"))
      workers = pids(server)
      40.times { server.get("/") }
      server.write("poison", "1")
      under_requests(server) { server.wait_for("canary.failed") { server.signal("USR2") } }

      assert_match(/requests failed/, server.wait_past("generation.discarded")["reason"])
      server.wait_past("worker.exited", generation: 1)
      assert_equal workers, pids(server), "the old ones have served on"
    end
  end

  def test_what_turns_bad_after_the_rollout_is_taken_back
    # So many requests are still missing when the poison comes, however slow the machine is.
    server = serve(app: APP, config: config("{ requests: 300, seconds: 2, longest: 600 }"))
    40.times { server.get("/") }
    under_requests(server) { server.refork }
    server.write("poison", "1")
    answers = under_requests(server) do
      server.wait_past("generation.discarded", generation: 1)
      File.delete(File.join(server.folder, "poison"))
      2.times { |slot| server.wait_past("worker.exited", generation: 1, slot: slot) }
    end

    assert_equal 200, answers.last
    assert_equal(%w[0 0], Array.new(2) { server.get("/").body })
    assert_equal(2, server.workers.count { |worker| worker.title.include?("gen 0") })
  end

  def test_a_self_test_that_fails_discards_a_generation
    server = serve(app: APP, config: config("false", 'self_test "GET /up"'))
    server.write("sick", "")
    discarded = server.wait_for("generation.discarded") { server.signal("USR2") }

    assert_match(%r{the self-test GET /up was answered with 503}, discarded["reason"])
    File.delete(File.join(server.folder, "sick"))
    server.refork
    worker = server.wait_past("worker.ready", generation: server.events("refork.finished").last["generation"])
    assert(worker)
    assert_equal 200, server.get("/").status
  end

  def test_a_self_test_that_fails_ends_a_boot
    server = serve(app: "run ->(_) { sleep }", config: "workers 1\ntimeout 0.2, grace: 20\nself_test \"GET /up\"\n",
                   ready: false)

    refute_predicate server.wait_for_exit, :success?
    assert_match(%r{the self-test GET /up was answered with 504}, server.output)
  end

  def test_suspension_and_force
    server = serve(app: APP, config: config("false", "self_test \"GET /up\"\ncontrol \"control.sock\""))
    server.write("sick", "")
    2.times { fail_once(server) }
    assert_equal 2, server.wait_past("refork.suspended")["count"]
    File.delete(File.join(server.folder, "sick"))
    text, status = pando(server, "refork")

    assert_match(/refused: reforking is suspended/, text)
    refute_predicate status, :success?
    assert_match(/reforking is suspended/, pando(server, "status").first)
    text, status = pando(server, "refork", "--force")
    assert_predicate status, :success?, text
    assert_match(/every worker runs generation/, text)
    refute_match(/suspended/, pando(server, "status").first)
  end

  # What the new release's settings say is the old one's until it has proved itself.
  def test_a_release_whose_canary_fails_changes_nothing
    server = serve(app: APP, config: config)
    40.times { server.get("/") }
    server.write("config.ru", "run ->(_) { raise IOError, 'the new release' }")
    server.write("pando.rb", "log_format :json\nworkers 3\nrollout canary: { requests: 20, seconds: 0.3 }\n#{HOOKS}")
    failed = nil
    answers = under_requests(server) { failed = server.wait_for("reload.failed") { server.signal("HUP") } }

    assert_match(/its canary did not prove itself/, failed["reason"])
    assert_includes answers, 200
    assert_equal 200, server.get("/").status
    assert_equal(2, server.workers.count { |worker| worker.title.include?("gen 0") })
  end

  def test_a_release_is_in_service_when_it_has_proved_itself
    server = serve(app: APP, config: config("{ requests: 5, seconds: 0.1, longest: 600 }"))
    server.write("pando.rb", "log_format :json\nworkers 3\nrefork :manual\n#{HOOKS}")
    under_requests(server) { server.wait_for("reload.finished") { server.signal("HUP") } }
    names = server.events.map { |event| event["event"] }

    assert_operator names.rindex("generation.retired"), :<, names.index("reload.finished")
    server.wait_past("worker.ready", slot: 2)
  end

  private

  def pids(server) = server.workers.map(&:pid).sort

  def fail_once(server)
    wait_until(message: "the backoff's end") do
      server.wait_for("refork.started", "refork.refused") { server.signal("USR2") }["event"] == "refork.started"
    end
    server.wait_past("generation.discarded", generation: server.events("refork.started").last["generation"])
  end

  def pando(server, *arguments)
    Open3.capture2e(*Support::Checkout.pando(*arguments, "--control", File.join(server.folder, "control.sock")))
  end
end
