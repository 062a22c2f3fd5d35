# frozen_string_literal: true

require "test_helper"
require "pando/config/node_line"
require "pando/swarm/runner_lint"
require "support/servers"
require "tmpdir"

# Promise: any object can be a runner. The one of examples/swarm shows how.
class CustomRunnerTest < Minitest::Test
  include Support::Servers

  EXAMPLE = Support::Checkout.path("examples/swarm")
  require File.join(EXAMPLE, "folder_runner")

  def test_the_example_does_each_job_across_a_refork_and_a_kill
    server = serve(command: "swarm", config: config, listen: false)
    first = order(server, "first", 20)
    wait_for_done(server, first)
    server.refork
    server.wait_for_leavers
    second = order(server, "second", 20)
    wait_for_done(server, second)
    server.wait_for("worker.ready") { Process.kill("KILL", server.nodes("folder").first.pid) }
    third = order(server, "third", 20)
    wait_for_done(server, third)

    assert_predicate server.stop, :success?, server.output
    (first + second + third).each { |name| assert_equal 1, server.output.scan("#{name}: 2 words").size, name }
    assert_empty server.events("worker.lost").drop(1)
  end

  def test_the_example_keeps_the_rules
    Dir.mktmpdir do |folder|
      inbox, done = %w[inbox done].map { |name| File.join(folder, name) }
      work = -> { %w[one two].each { |name| File.write(File.join(inbox, name), "text") } }
      problems = Pando::Swarm::RunnerLint.check(work: work) { |node| FolderRunner.new(node, inbox, done) { nil } }

      assert_empty problems
      assert_equal %w[one two], Dir.children(done).sort
    end
  end

  # What is locked by a process that was killed is free.
  def test_a_job_of_a_killed_node_is_done_by_another
    Dir.mktmpdir do |folder|
      inbox, done = %w[inbox done].map { |name| File.join(folder, name) }
      FileUtils.mkdir_p(inbox)
      File.write(File.join(inbox, "job"), "")
      started, victim = at_work(inbox, done)
      runner = FolderRunner.new(node, inbox, done) { nil }
      runner.start
      Process.kill("KILL", victim)
      Process.wait(victim)
      wait_until { Dir.children(done) == ["job"] }
    ensure
      runner&.stop
      started&.close
    end
  end

  private

  def config
    text = File.read(File.join(EXAMPLE, "swarm.rb"))
    "$stdout.sync = true\n#{text.sub("./folder_runner.rb", File.join(EXAMPLE, "folder_runner.rb"))}\nrefork :manual"
  end

  # @return [Array<String>] their names
  def order(server, name, count)
    inbox = File.join(server.folder, "inbox")
    Array.new(count) { |number| "#{name}#{number}" }.each do |job|
      File.write(File.join(server.folder, job), "two words")
      File.rename(File.join(server.folder, job), File.join(inbox, job))
    end
  end

  def wait_for_done(server, names)
    done = File.join(server.folder, "done")
    wait_until(message: -> { server.output }) { (names - Dir.children(done)).empty? }
  end

  def node = Pando::Swarm::Node.new(Pando::Config::NodeKind.new(name: "folder", concurrency: 1), 0)

  # @return [Array(IO, Integer)] a child that has a job and does not end it
  def at_work(inbox, done)
    reader, writer = IO.pipe
    victim = fork do
      FolderRunner.new(node, inbox, done) { writer.puts("begun") && sleep }.start
      sleep
    end
    writer.close
    reader.gets
    [reader, victim]
  end
end
