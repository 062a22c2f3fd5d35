# frozen_string_literal: true

require "test_helper"
require "support/deferral"
require "support/folder_jobs"

# Promise: a node whose runner has threads is forked only when none of them is left; its jobs have ended before, and
# it goes on with a new runner afterwards. Each job is done once.
class SwarmReforkNodesTest < Minitest::Test
  include Support::FolderJobs
  include Support::Deferral

  def test_every_job_is_done_while_generations_change
    server = swarm("count: 2, concurrency: 2, refork: [15]",
                   "rollout canary: { requests: 3, seconds: 0.1, longest: 2 }")
    names = Array.new(150) { |number| format("job%03d", number) }
    names.each { |name| order(server, name, "0.01") }
    wait_for_jobs(server, "done", names)
    server.wait_past("refork.finished")

    assert_equal(names, jobs(server, "done"))
    assert_empty(server.complaints)
  end

  def test_the_source_goes_on_with_a_new_runner_until_it_is_replaced
    server = swarm("count: 1", "refork :manual; rollout canary: { requests: 1, seconds: 0.1, longest: 30 }")
    order(server, "before")
    wait_for_jobs(server, "done", ["before"])
    server.wait_for("canary.serving") { server.signal("USR2") }
    %w[first second third].each { |name| order(server, name, "until go") }
    wait_for_jobs(server, "doing", %w[first second third]) # more than the canary does at once
    File.write(File.join(server.folder, "go"), "")
    server.wait_past("refork.finished")
    wait_for_jobs(server, "done", %w[first second third])
  end

  def test_its_nodes_defer_full_collections_after_the_first_refork
    skip_without_deferral
    server = swarm("count: 1", <<~RUBY)
      gc major: :postpone
      refork :manual
      after_worker_ready { |_, worker| File.write("\#{worker.generation}.gc", GC.config[:rgengc_allow_full_mark].inspect) }
    RUBY
    order(server, "before")
    wait_for_jobs(server, "done", ["before"])
    server.refork

    assert_equal(%w[true false], [0, 1].map { |number| File.read(File.join(server.folder, "#{number}.gc")) })
  end

  def test_one_whose_jobs_do_not_end_is_not_forked_and_goes_on
    server = swarm("count: 1, quiet_timeout: 0.3")
    node = server.nodes("folder").first.pid
    order(server, "long", "until go")
    wait_for_jobs(server, "doing", ["long"])
    discarded = server.wait_for("generation.discarded") { server.signal("USR2") }
    File.write(File.join(server.folder, "go"), "")
    order(server, "after")
    wait_for_jobs(server, "done", %w[long after])

    assert_equal("its running work did not end within 0.3 s", discarded["reason"])
    assert_equal([node], server.nodes("folder").map(&:pid))
  end

  def test_another_one_is_forked_then
    server = swarm("count: 2, quiet_timeout: 0.3")
    order(server, "long", "until go")
    wait_for_jobs(server, "doing", ["long"])
    nil until refork(server) == "refork.finished" # the first one asked may have been at it
    File.write(File.join(server.folder, "go"), "")
    wait_for_jobs(server, "done", ["long"])

    assert_operator(server.events("generation.discarded").size, :<=, 1)
  end

  # Each node takes a lock by its number, and could not begin beside another one that has it.
  EXCLUSIVE = <<~'RUBY'
    class LockedRunner < FolderRunner
      def initialize(node)
        super(1)
        @path = "lock#{node.number}"
      end

      def start
        @lock_file = File.open(@path, File::CREAT | File::RDWR)
        raise "there are two of #{@path}" unless @lock_file.flock(File::LOCK_EX | File::LOCK_NB)

        super
      end

      def stop
        super
        @lock_file.close
      end
    end
  RUBY

  def test_who_must_not_live_beside_its_successor_is_gone_first
    config = "require #{RUNNER.inspect}\nrollout canary: false\nrefork :manual\n#{EXCLUSIVE}\n" \
             "node(:locked, count: 2, exclusive: true) { |node| LockedRunner.new(node) }"
    server = serve(command: "swarm", config: config, listen: false)
    server.refork
    Process.kill("KILL", server.nodes("locked").first.pid)
    server.wait_past("worker.lost")
    server.refork

    assert_empty(server.events("worker.failed"))
    assert_equal(%w[0 1], server.nodes("locked").map { |node| node.title[/locked (\d)/, 1] }.sort)
  end

  private

  # @return [String] what has become of it
  def refork(server)
    started = nil
    wait_until(message: -> { server.output }) do
      started = server.wait_for("refork.started", "refork.refused") { server.signal("USR2") }
      started["event"] == "refork.started"
    end
    server.wait_past("refork.finished", "generation.discarded", generation: started["generation"])["event"]
  end
end
