# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"
require "support/folder_jobs"

# A server that no client asks anything is not waited for: neither by a reload nor by a refork.
class QuietReloadTest < Minitest::Test
  include Support::FolderJobs

  APP = <<~RUBY
    run lambda { |env|
      raise IOError, "poisoned" if File.exist?("poison")
      File.write("asked", "\#{env["REQUEST_METHOD"]} \#{env["PATH_INFO"]} \#{env["QUERY_STRING"]}\\n", mode: "a") if
        env["HTTP_USER_AGENT"] == "pando self-test"
      hold_until("go") if env["PATH_INFO"] == "/slow"
      [200, {}, ["fine"]]
    }
  RUBY
  # By these a proof, or the watch after it, would outlast the test.
  LONG = "{ requests: 100_000, seconds: 10, longest: 600 }"

  [true, false].each do |reactor|
    where = reactor ? "behind_the_reactor" : "in_direct_mode"

    define_method(:"test_a_reload_does_not_wait_for_requests_#{where}") do
      server = quiet("reactor #{reactor}\nrollout safe_paths: ['/', '/products?page=2']")
      text, status = pando(server, "reload")

      assert_predicate status, :success?, text
      assert_match(/every worker runs the new release, after [\d.]+ s, without proof: no request came/, text)
      server.wait_past("reload.serving")
      assert_in_order(server, "canary.serving", "canary.unproven", "generation.rolling", "generation.current",
                      "reload.serving")
      assert_equal "GET / 200, GET /products?page=2 200", server.events("canary.unproven").last["replayed"]
      assert_equal ["GET / \n", "GET /products page=2\n"], File.readlines(File.join(server.folder, "asked"))
      assert_empty server.events("canary.passed") + server.events("reload.finished"), "it is watched still"
      assert_equal([0], server.events("canary.unproven").map { |event| event["requests"] })
      assert_match(/served 0 requests in \d+ s; unproven: no request came/, pando(server, "status").first)
    end
  end

  def test_nor_does_a_refork
    server = quiet
    text, status = pando(server, "refork")

    assert_predicate status, :success?, text
    assert_match(/^every worker runs generation 1, after [\d.]+ s, without proof: no request came/, text)
    assert_in_order(server, "canary.serving", "canary.unproven", "generation.rolling", "refork.finished")
  end

  # The next order ends the watch of the one before, whose settings hold from then on.
  def test_the_next_reload_does_not_wait_for_the_watch
    server = quiet
    pando(server, "reload")
    server.write("pando.rb", "log_format :json\n#{settings("workers 3")}")
    text, status = pando(server, "reload", "--now")

    assert_predicate status, :success?, text
    assert_includes text, "without proof: pando reload --now"
    assert_equal 1, server.events("reload.finished").size
    assert_in_order(server, "reload.serving", "reload.finished", "canary.skipped", "generation.rolling")
    assert_equal 2, server.wait_past("canary.skipped")["generation"]
    assert_equal 1, server.events("canary.serving").size, "the second has had no trial"
  end

  def test_what_fails_while_it_is_watched_is_taken_back
    server = quiet
    pando(server, "reload")
    server.write("poison", "")
    server.wait_for("generation.discarded") { 10.times { server.get("/") } }
    File.delete(File.join(server.folder, "poison"))

    assert_match(/(\d+) of \1 requests failed/, server.wait_past("reload.failed")["reason"])
    2.times { |slot| server.wait_past("worker.exited", generation: 1, slot: slot) }
    assert_equal 200, server.get("/").status
    assert_empty(server.workers.reject { |worker| worker.title.include?("gen 0") })
  end

  def test_a_safe_path_that_fails_discards_the_release
    server = quiet("rollout safe_paths: ['/']")
    workers = server.workers.map(&:pid).sort
    server.write("poison", "")
    text, status = pando(server, "reload")

    refute_predicate status, :success?
    assert_match(%r{the replay of GET / was answered with 500}, text)
    server.wait_past("worker.exited", generation: 1)
    assert_equal workers, server.workers.map(&:pid).sort
  end

  # As long as requests come, a reload waits for a generation on trial, and the user who waits is told.
  def test_an_order_that_must_wait_says_for_what_and_for_how_long
    server = quiet
    under_requests(server) do
      server.wait_for("canary.serving") { server.signal("USR2") }
      text, status = pando(server, "reload", "--wait", "2")

      refute_predicate status, :success?
      assert_match(/^  waiting: generation 1 \(refork\) is on trial, for 1[12]\d\d s at most$/, text)
    end
  end

  def test_a_refork_whose_worker_is_at_a_request_says_so
    server = quiet("workers 1")
    request = Thread.new { server.get("/slow") }
    server.wait_until_busy(1)
    wait_until { pando(server, "status").first.include?("GET /slow") }
    text, = pando(server, "refork", "--wait", "2")
    server.write("go", "")

    assert_match(%r{^  waiting: the worker in slot 0 is at GET /slow, for \d+ s at most$}, text)
    assert_equal 200, request.value.status
  end

  def test_scale_returns_when_the_workers_are_ready_and_tells_why_they_are_not
    server = quiet("after_worker_fork { raise IOError, 'no database' if File.exist?('full') }")
    text, status = pando(server, "scale", "3")
    assert_equal [true, 3], [status.success?, server.workers.size], text
    text, status = pando(server, "scale", "1")
    assert_equal [true, 1], [status.success?, server.workers.size], text
    server.write("full", "")
    text, status = pando(server, "scale", "2")

    assert_equal 1, status.exitstatus
    assert_match(/^pando: 1 of 2 workers are ready after 3 failures: .*no database/, text)
  end

  def test_web_and_nodes
    server = serve(app: APP, config: <<~RUBY)
      require #{RUNNER.inspect}
      #{settings}
      node(:folder, count: 1) { FolderRunner.new }
    RUBY
    server.wait_past("server.ready")
    text, status = pando(server, "reload")

    assert_predicate status, :success?, text
    assert_match(/without proof: no (job|request) came/, text)
    server.wait_past("reload.serving")
    assert_equal(%w[folder web], server.events("canary.unproven").map { |event| event["pool"] }.sort)
    assert_equal 1, server.events("reload.serving").size
  end

  private

  def settings(more = "")
    "workers 2\nrefork :manual\nrollout canary: #{LONG}\ncontrol 'control.sock'\n#{more}\n"
  end

  def quiet(more = "") = serve(app: APP, config: settings(more))

  def assert_in_order(server, *names)
    told = server.events.map { |event| event["event"] }.select { |name| names.include?(name) }
    assert_equal names, told.drop_while { |name| name != names.first }.uniq.first(names.size)
  end

  def pando(server, *arguments)
    Open3.capture2e(RbConfig.ruby, "-W0", "-I", File.join(Support::ServerProcess::ROOT, "lib"),
                    File.join(Support::ServerProcess::ROOT, "exe/pando"), *arguments,
                    "--control", File.join(server.folder, "control.sock"))
  end
end
