# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "rbconfig"
require "support/servers"

# Promise: a thread that forked processes would lack refuses the refork, and is told of once; one that comes back there,
# by whatever means, does not.
class LostThreadsTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  PANDO = File.expand_path("../../exe/pando", __dir__)
  LINE = "config.ru:5"
  # A library with a background thread, which starts with the first line that is written.
  APP = <<~'RUBY'
    module Writer
      LINES = Queue.new
      class << self
        def run
          @thread = Thread.new { loop { LINES.pop } }.tap { |thread| thread.name = "writer" }
          @pid = Process.pid
        end
        def start = @thread || run
        def revive = @pid == Process.pid || run
        def end = @thread&.kill.then { @thread = nil }
      end
    end
    Writer.run if ENV["AT_LOAD"]
    run lambda { |env|
      case env["PATH_INFO"]
      when "/write" then Writer.start
      when "/checked" then Writer.revive
      when "/end" then Writer.end
      end
      [200, {}, ["#{Process.pid}"]]
    }
  RUBY
  WORDS = /\ANo forked process has the thread \("writer"\) of the application that #{LINE} starts: /

  def test_a_lost_thread_refuses_the_refork_and_is_told_of_once
    server = start("workers 2")
    outcome = during(server, "/write") { pando(server, "refork") }
    found = server.wait_past("finding.reported", kind: "lost_thread")
    words = "#{found["reason"]}. #{found["advice"]}"

    assert_match(WORDS, found["reason"])
    assert_equal(%w[warn error refused], found.values_at("level", "severity", "action"))
    assert_equal("#{server.folder}/#{LINE}", found["location"])
    assert_match(/Pando::ForkSafety\.thread.*fork_safety threads: { allow: \["config\.ru:5"\] }/, found["advice"])
    assert_equal([1, "pando: refused: #{words}"], [outcome.last, outcome[1].lines.last.chomp])
    assert_refused_again(server, words)
    assert_equal([found], server.complaints, "nothing but the one warning")
  end

  def test_reforking_goes_on_when_the_thread_has_ended
    server = start("workers 1")
    during(server, "/write") { server.wait_for("generation.refused") { server.signal("USR2") } }

    assert_equal([1], held(server))
    server.get("/end")

    assert(wait_until { held(server) == [0] })
    during(server, "/") { server.refork }
    server.get("/write")

    assert(wait_until { held(server) == [1] }, "a worker of the next generation has started it for itself")
    assert_equal(1, server.events("finding.reported").size)
  end

  def test_refork_auto_waits_and_does_not_spin
    server = start("workers 2\nrefork after: [20]")
    during(server, "/write") do
      server.wait_past("generation.refused")
      before = served(server)
      wait_until { served(server) >= before + 200 }
    end

    assert_equal(1, server.events("refork.started").size)
    assert_empty(server.events("refork.postponed"))
    assert_equal([0, 0], server.workers.map { |worker| worker.title[/gen (\d+)/, 1].to_i })
  end

  def test_a_thread_that_its_library_starts_again_is_tried_out_and_no_obstacle
    server = start("workers 2")
    during(server, "/checked") { 3.times { server.refork } }

    assert_empty(server.complaints)
    assert_empty(server.events("generation.refused"))
  end

  def test_a_thread_that_a_hook_starts_again_needs_no_request_to_show_it
    server = start("workers 1\nafter_worker_fork { Writer.run }")
    server.get("/write")
    2.times { server.refork }

    assert_empty(server.complaints)
  end

  def test_nor_does_one_that_a_hook_ends_before_the_fork
    server = start("workers 1\nbefore_fork { Writer.end }")
    server.get("/write")
    server.refork

    assert_empty(server.complaints)
  end

  def test_it_can_be_allowed_by_the_line_or_altogether
    ["{ allow: [\"#{LINE}\"] }", ":allow"].each do |policy|
      server = start("workers 1\nfork_safety threads: #{policy}")
      server.get("/write")
      server.refork

      assert_empty(server.complaints, policy)
    end
  end

  def test_or_only_be_reported
    server = start("workers 1\nfork_safety threads: { allow: [\"other\"], otherwise: :report }")
    server.get("/write")
    server.refork
    found = during(server, "/write") { server.wait_past("finding.reported", kind: "lost_thread") }

    assert_match(WORDS, found["reason"])
    assert_nil(found["action"])
    during(server, "/write") { server.refork }
    assert_match(/^lost thread: #{Regexp.escape(found["reason"])}\. /, pando(server, "status").first)
    assert_equal([found], server.events("finding.reported"))
  end

  def test_one_that_the_application_started_at_boot_is_reported_when_it_does_not_come_back
    server = start("workers 2", env: { "AT_LOAD" => "1" })
    found = during(server, "/") { server.wait_past("finding.reported", kind: "lost_thread") }

    assert_match(WORDS, found["reason"])
    assert_equal([nil, 0], found.values_at("action", "generation"))
    during(server, "/") { server.refork }
    assert_equal([found], server.events("finding.reported"))
  end

  def test_and_not_when_it_does
    server = start("workers 2\nafter_worker_fork { Writer.run }", env: { "AT_LOAD" => "1" })
    during(server, "/") { wait_until { served(server) > 300 } }
    server.refork

    assert_empty(server.complaints)
  end

  def test_with_fail_it_fails_the_boot
    server = start("workers 1\nfork_safety threads: :fail", env: { "AT_LOAD" => "1" }, ready: false)

    assert_equal(1, server.wait_for_exit.exitstatus)
    assert_match(/#{LINE} starts: .* \(refused by fork_safety threads:\)/, server.output)
  end

  def test_a_trial_that_nobody_visits_says_what_it_waits_for_and_ends_with_a_reload
    server = start("workers 1")
    server.get("/write")
    client = nil
    server.wait_for("canary.serving") { client = Thread.new { pando(server, "refork") } }
    status, = pando(server, "status")
    server.wait_for("reload.finished") { server.signal("HUP") }
    _, errors, code = client.value
    thread = "whether the thread or timer task that #{server.folder}/#{LINE} starts comes back after a fork"

    assert_match(/; its canary must show #{thread}, for \d+ s at most; it runs #{server.folder}$/, status)
    assert_match(/^  waiting: .* is on trial: its first worker is to show #{thread}, for \d+ s at most$/, errors)
    assert_match(/^pando: refused: .* not known yet #{thread}, for that could not be tried out \(a reload /, errors)
    assert_equal(1, code)
    assert_empty(server.complaints)
  end

  def test_the_mold_s_death_does_not_bring_it_about_either
    server = start("workers 1")
    server.get("/write")
    server.wait_for("generation.current") { Process.kill("KILL", server.mold.pid) }

    assert_equal(["heal"], server.events("generation.refused").map { |event| event["purpose"] })
    assert_equal(1, server.events("mold.booting").count { |event| event["reason"] == "heal" })
    assert_equal(200, server.get("/").status)
  end

  private

  def start(config, **options)
    serve(app: APP, config: "refork :manual\ncontrol \"p.sock\"\n#{config}", **options)
  end

  def assert_refused_again(server, words)
    [[], ["--force"]].each { |flags| assert_equal("pando: refused: #{words}", last_line(server, *flags)) }
    assert_match(/^no refork from [12] of 2 workers: #{Regexp.escape(words)}$/, pando(server, "status").first)
    lost = JSON.parse(pando(server, "status", "--format", "json").first)["lost_threads"]

    assert_equal([[words, true]], lost.map { |one| ["#{one["reason"]}. #{one["advice"]}", one["refused"]] })
    assert_equal(200, server.get("/").status)
  end

  def last_line(server, *flags)
    _, errors, status = pando(server, "refork", *flags)

    assert_equal(1, status)
    errors.lines.last.chomp
  end

  # The block's result, while requests come.
  def during(server, path)
    server.get(path)
    result = nil
    under_requests(server, path) { result = yield }
    result
  end

  def held(server) = status(server)["lost_threads"].map { |one| one["held"] }
  def served(server) = status(server)["queue"]["requests"]
  def status(server) = JSON.parse(pando(server, "status", "--format", "json").first)

  def pando(server, *words)
    lib = File.expand_path("../../lib", __dir__)
    out, errors, status = Open3.capture3(RbConfig.ruby, "-W0", "-I", lib, PANDO, *words, "-c", "pando.rb",
                                         chdir: server.folder)
    [out, errors, status.exitstatus]
  end
end
