# frozen_string_literal: true

require "test_helper"
require "support/servers"

# Promise: the `refork` setting decides when a generation is replaced.
class ReforkScheduleTest < Minitest::Test
  include Support::Servers

  # A worker of it that has served fifty requests has much to share; with next to nothing :auto would wait.
  WARMING = "KEPT = []\nrun ->(_env) { [200, {}, [(KEPT << ('x' * 300_000)).size.to_s]] }\n"

  def test_counts_one_for_each_generation_and_off_at_the_end
    server = start("20,40,off")
    ask(server, 19)
    assert_quiet(server)
    assert_reforks(server, 1, after: 1, requests: 20)
    ask(server, 39)
    assert_quiet(server)
    assert_reforks(server, 2, after: 1, requests: 40)
    ask(server, 100)
    assert_quiet(server)

    assert_equal([1, 2], server.events("refork.finished").map { |event| event["generation"] })
  end

  def test_the_last_count_repeats
    server = start("10,5")

    [10, 5, 5].each.with_index(1) do |count, generation|
      assert_reforks(server, generation, after: count, requests: count)
    end
  end

  def test_counts_are_those_of_one_worker
    server = serve(config: "workers 2", arguments: ["--refork", "30"])
    started = server.wait_for("refork.started") do
      server.get("/") until server.events("refork.started").any?
    end

    assert_operator(started["requests"], :>=, 30)
    assert_equal("a worker served 30 requests", started["reason"])
    server.wait_past("refork.finished", generation: 1)
  end

  def test_auto_begins_at_fifty
    server = start("auto", app: WARMING)
    ask(server, 49)
    assert_quiet(server)

    assert_reforks(server, 1, after: 1, requests: 50)
  end

  def test_manual_waits_for_the_signal
    server = start("manual")
    ask(server, 60)
    assert_quiet(server)
    server.refork

    assert_equal(["USR2"], server.events("refork.started").map { |event| event["reason"] })
  end

  def test_off_refuses_the_signal
    server = start("off")
    server.get("/")
    refused = server.wait_for("refork.refused") { server.signal("USR2") }

    assert_equal("USR2", refused["wanted"])
    assert_includes(refused["reason"], "switched off")
    wait_until { server.workers.first.title == "pando worker 0 gen 0 idle" }
  end

  private

  def start(refork, **options) = serve(config: "workers 1", arguments: ["--refork", refork], **options)

  def ask(server, count)
    count.times { assert_equal(200, server.get("/").status) }
  end

  # So many requests more, and the worker has served so many when it is promoted.
  def assert_reforks(server, generation, after:, requests:)
    ask(server, after)
    started = server.wait_past("refork.started", generation: generation)
    server.wait_past("refork.finished", generation: generation)
    wait_until(message: "one worker") { server.workers.size == 1 }

    assert_equal(requests, started["requests"])
    assert_equal("a worker served #{requests} requests", started["reason"])
  end

  # The monitor has looked several times, when a worker has come and gone, and found nothing to do.
  def assert_quiet(server)
    before = server.events("refork.started").size
    server.wait_for("worker.ready", slot: 1) { server.signal("TTIN") }
    server.wait_for("worker.exited", slot: 1) { server.signal("TTOU") }
    server.wait_for("workers.scaled") { server.signal("TTIN") }
    server.wait_for("worker.exited", slot: 1) { server.signal("TTOU") }

    assert_equal(before, server.events("refork.started").size)
  end
end
