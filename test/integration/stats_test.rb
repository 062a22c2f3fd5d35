# frozen_string_literal: true

require "test_helper"
require "json"
require "support/server_process"
require "support/waiting"

# Promise: Pando.stats tells a worker and a service of the workers of their pool, as they are now.
class StatsTest < Minitest::Test
  include Support::Waiting

  parallelize_me!

  APP = <<~RUBY
    run lambda { |env|
      sleep(0.01) until env["PATH_INFO"] == "/" || File.exist?("go") || env["PATH_INFO"].start_with?("/slow")
      [200, { "content-type" => "application/json" }, [Pando.stats]]
    }
  RUBY
  SERVICE = <<~RUBY
    service(:watcher) do |service|
      File.write("stats.new", Pando.stats) && File.rename("stats.new", "stats.json") until service.wait(0.05)
    end
  RUBY

  def teardown = @server&.kill

  def test_in_a_worker_over_a_refork
    start("workers 2\nthreads 3")
    before = stats
    assert_equal([2, 0, 2, 0], before.values_at("workers", "phase", "booted_workers", "old_workers"))
    assert_equal([0, 1], workers(before).map { |one| one["index"] })
    assert_equal([[3, 3]] * 2, workers(before).map { |one| one["last_status"].values_at("running", "max_threads") })
    assert_equal(5, sum(before, "pool_capacity"), "one thread serves this request")
    @server.refork
    wait_until { stats.values_at("workers", "old_workers") == [2, 0] }

    after = stats
    assert_equal([1, [1, 1]], [after["phase"], workers(after).map { |one| one["phase"] }])
    assert_equal(before["started_at"], after["started_at"])
    assert_empty(workers(before).map { |one| one["pid"] } & workers(after).map { |one| one["pid"] })
  end

  # Whatever the workers do meanwhile.
  def test_in_a_service_that_sees_the_queue
    start("workers 1\n#{SERVICE}")
    wait_until { File.exist?(file) }
    clients = Array.new(4) { Thread.new { @server.get("/held") } }
    wait_until { sum(seen, "backlog") == 3 }
    assert_equal([1, 0], [sum(seen, "busy_threads"), sum(seen, "pool_capacity")])
    @server.write("go", "")
    clients.each(&:join)

    wait_until { sum(seen, "backlog").zero? && sum(seen, "pool_capacity") == 1 }
  end

  def test_a_killed_worker_is_not_counted_and_its_successor_is
    start("workers 1\n#{SERVICE}")
    wait_until { File.exist?(file) && seen["workers"] == 1 }
    pid = workers(seen).first["pid"]
    Process.kill(:KILL, pid)

    wait_until { seen["booted_workers"] == 1 && workers(seen).first["pid"] != pid }
    assert_equal(1, seen["workers"])
  end

  def test_each_pool_sees_its_own_workers
    start("workers 1\npool :slow, paths: [\"/slow\"], workers: 2")

    { "/" => 1, "/slow" => 2 }.each do |path, workers|
      wait_until { JSON.parse(@server.get(path).body).values_at("workers", "booted_workers") == [workers] * 2 }
    end
  end

  def test_direct_mode
    start("workers 2\nreactor false")

    wait_until do # a worker that has just answered is busy for a moment longer
      now = stats
      [now["booted_workers"], sum(now, "busy_threads"), sum(now, "pool_capacity")] == [2, 1, 1]
    end
  end

  private

  def start(config)
    @server = Support::ServerProcess.start(app: APP, config: "#{config}\nrefork :manual")
  end

  def file = File.join(@server.folder, "stats.json")
  def seen = JSON.parse(File.read(file))
  def stats = JSON.parse(@server.get("/").body)
  def workers(stats) = stats["worker_status"]
  def sum(stats, figure) = workers(stats).sum { |one| one["last_status"][figure] }
end
