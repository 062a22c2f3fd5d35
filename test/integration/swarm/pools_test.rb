# frozen_string_literal: true

require "test_helper"
require "support/deferral"
require "support/folder_jobs"

# Promise: one server, and so one container, may have workers that serve requests and several kinds of job nodes. Each
# kind has molds of its own and is reforked, replaced and reloaded by itself.
class SwarmPoolsTest < Minitest::Test
  include Support::FolderJobs
  include Support::Deferral

  CONFIG = <<~RUBY.freeze
    require #{RUNNER.inspect}
    workers 1
    refork :manual
    service(:clock) { |service| nil until service.wait(1) }
    node(:folder, count: 2) { FolderRunner.new }
    node(:spare, count: 1) { FolderRunner.new }
  RUBY

  def test_requests_and_jobs_in_one_server
    server = serve(config: CONFIG)
    %w[web folder spare].each { |pool| server.wait_past("generation.current", pool: pool) }
    order(server, "one")
    wait_for_jobs(server, "done", %w[one])

    assert_equal(200, server.get("/").status)
    assert_equal([1, 3], server.wait_past("server.ready").values_at("workers", "nodes"))
    server.wait_past("service.ready", name: "clock")
    assert_equal(1, server.tree.titled("service").size)
    assert_equal([1, 2, 1], [server.workers.size, server.nodes("folder").size, server.nodes("spare").size])
    %w[web folder spare].each { |pool| refork(server, pool) }
    server.wait_for_leavers
    server.wait_for("worker.ready", pool: "folder") { Process.kill("KILL", server.nodes("folder").first.pid) }
    reload(server)
    order(server, "two")
    wait_for_jobs(server, "done", %w[two])

    assert_equal(200, server.get("/").status)
    assert_predicate(server.stop, :success?, server.output)
  end

  # A pool begins cold, even if its first mold is forked from that of another pool.
  def test_a_kind_that_shares_a_boot_defers_full_collections_only_after_a_refork
    skip_without_deferral
    server = serve(config: <<~RUBY)
      require #{RUNNER.inspect}
      workers 1
      refork :manual
      gc major: :postpone
      after_worker_ready do |_, node|
        File.write("\#{node.pool_name}.\#{node.generation}", GC.config[:rgengc_allow_full_mark].to_s)
      end
      node(:folder, count: 1, shared: true) { FolderRunner.new }
    RUBY
    server.wait_past("generation.current", pool: "folder")
    refork(server, "folder")

    assert_equal(%w[true false], [0, 1].map { |number| File.read(File.join(server.folder, "folder.#{number}")) })
  end

  # What the workers' mold has loaded, the nodes' has without loading it again; what they lack, it loads by itself.
  def test_a_kind_may_share_the_boot_of_the_first
    server = serve(app: SHARED_APP, config: SHARED)
    server.wait_past("generation.current", pool: "sharer")
    web = server.tree.titled("mold web").first.pid

    assert_equal([web.to_s], boots(server))
    assert_equal("#{web}, its part", File.read(File.join(server.folder, "seen")))
    lose_sharer(server)

    assert_equal([web.to_s], boots(server), "a new mold is forked as well")
    server.wait_for("reload.finished") { server.signal("HUP") }
    assert_equal(2, boots(server).size)
    %w[web sharer].each { |pool| refork(server, pool) }
    lose_sharer(server)

    assert_equal(2, boots(server).size, "an image of its own has no use for the app of the workers")
    assert_equal("none, its part", File.read(File.join(server.folder, "seen")))
    assert_predicate(server.stop, :success?, server.output)
  end

  SHARED_APP = <<~'RUBY'
    APP_OF = Process.pid
    File.write("boots", "#{APP_OF}\n", mode: "a")
    File.write("part.rb", "SHARER_PART = 'its part'")
    run ->(_env) { [200, {}, []] }
  RUBY
  SHARED = <<~'RUBY'
    workers 1
    refork :manual
    class Sharer
      def start = File.write("seen", "#{defined?(APP_OF) ? APP_OF : :none}, #{SHARER_PART}")
      def quiet = nil
      def stop = nil
      def busy? = false
      def progress = 0
    end
    node(:sharer, shared: true, require: "./part.rb") { Sharer.new }
  RUBY

  private

  # Right after a rollout the old workers may still be leaving.
  def refork(server, pool)
    answer = -> { server.wait_for("refork.started", "refork.refused", pool: pool) { server.signal("USR2") } }
    said = answer.call
    until said["event"] == "refork.started"
      IO.select(nil, nil, nil, Support::Waiting::POLL_INTERVAL)
      said = answer.call
    end
    server.wait_past("refork.finished", pool: pool, generation: said["generation"])
  end

  # Its mold and its nodes, and if they leave, those before them.
  def lose_sharer(server)
    server.wait_for_leavers
    server.wait_for("generation.current", pool: "sharer", purpose: "heal") do
      [*server.tree.titled("mold sharer"), *server.nodes("sharer")].each { |one| kill(one.pid) }
    end
  end

  def kill(pid)
    Process.kill("KILL", pid)
  rescue Errno::ESRCH
    nil # it had been told to leave
  end

  def boots(server) = File.readlines(File.join(server.folder, "boots"), chomp: true)

  def reload(server)
    config = File.read(File.join(server.folder, "pando.rb")).sub("count: 1", "count: 2")
    server.write("pando.rb", "#{config}node(:late, count: 1) { FolderRunner.new }")
    server.wait_for("reload.finished") { server.signal("HUP") }
    server.wait_past("worker.ready", pool: "spare", slot: 1)
    assert_equal("node late (or pando upgrade)", server.events("reload.incomplete").last["settings"])
    server.write("pando.rb", config.sub("node(:spare", "node(:other"))
    failed = server.wait_for("reload.failed") { server.signal("HUP") }

    assert_match(/runs web, folder, spare, the new config has web, folder, other: .* Restart/, failed["reason"])
  end
end
