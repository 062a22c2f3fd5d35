# frozen_string_literal: true

require "test_helper"
require "support/sidekiq_swarm"

# Promise: Sidekiq does its jobs in nodes that are reforked and killed, and none is lost.
class SidekiqNodesTest < Minitest::Test
  include Support::SidekiqSwarm

  def test_jobs_are_done_once_while_nodes_are_reforked
    server = swarm("count: 2, concurrency: 3, queues: %w[urgent default], weights: { urgent: 3 }")
    names = Array.new(200) { |number| "job#{number}" }
    order(*names.first(100).map { |name| [name, 0.01] }, queue: "urgent")
    order(*names.last(100).map { |name| [name, 0.01] })
    order([], [], job: "BrokenJob")
    order([], job: "NoSuchJob")
    2.times { server.refork }
    wait_for_end(server, names)

    assert_empty(ended(server).reject { |_, pids| pids.size == 1 })
    wait_until(message: -> { [known_pids, node_pids(server)] }) { known_pids == node_pids(server) }
    assert_predicate(server.stop, :success?)
    assert_empty(server.complaints.reject { |event| event["event"] == "refork.refused" }) # asked again until granted
    assert_empty(@redis.call("KEYS", "pando:sidekiq:held:*") + @redis.call("HKEYS", "pando:sidekiq:holders"))
  end

  def test_jobs_of_a_node_that_is_killed_are_run_again
    server = swarm("count: 2, concurrency: 2")
    order(*%w[one two three].map { |name| [name, 0, "go"] })
    victim = %w[one two three].map { |name| wait_for_begin(server, name) }.first
    lost, others = %w[one two three].partition { |name| began(server)[name] == [victim] }
    server.wait_for("worker.ready") { Process.kill("KILL", victim) }
    lost.each { |name| wait_for_begin(server, name, 2) }
    let_go(server)
    wait_for_end(server, %w[one two three])

    assert_equal([1, 1, 1], ended(server).values.map(&:size))
    others.each { |name| assert_equal(1, began(server)[name].size) }
  end

  def test_how_long_jobs_have_waited
    server = swarm("count: 1, concurrency: 1")
    order(["first", 0, "go"])
    wait_for_begin(server, "first")
    order(%w[second])
    @redis.call("LPUSH", "queue:default", "nonsense")
    wait_until(message: -> { loads(server) }) { loads(server).any? { |lag, latency| lag == 2 && latency.positive? } }
    @redis.call("LREM", "queue:default", 1, "nonsense")
    let_go(server)
    wait_for_end(server, %w[first second])

    wait_until(message: -> { loads(server) }) { loads(server) == [[0, 0]] }
  end

  # Its thread beats, its jobs come to nothing.
  def test_a_node_that_hangs_is_replaced_and_a_job_that_kills_too_many_is_set_aside
    server = swarm("count: 1, timeout: 0.5", "refork :manual; timeout 1, grace: 0.2")
    id, = order(["deadly", 0, "never"])
    @redis.call("SET", "pando:sidekiq:deaths:#{id}", 3) # so many nodes have died with it
    server.wait_past("node.stuck")
    wait_until(message: -> { server.output }) { @redis.call("ZCARD", "dead") == 1 }
    order(["after"])
    wait_for_end(server, %w[after])

    assert_equal(1, began(server)["deadly"].size)
  end

  def test_an_interrupt_gives_back_what_runs
    server = swarm("count: 1", "refork :manual; timeout 30, grace: 5")
    id, = order(["long", 0, "never"])
    wait_for_begin(server, "long")

    assert_predicate(server.stop("INT"), :success?)
    assert_empty(server.events("worker.killed"))
    assert_equal(1, @redis.call("LLEN", "queue:default"))
    assert_nil(@redis.call("GET", "pando:sidekiq:deaths:#{id}"))
  end

  # A second one would not be told of the end.
  def test_there_is_one_scheduler_however_late_its_thread_begins
    server = swarm("count: 1", required: jobs_and(<<~RUBY))
      Thread.prepend(Module.new do
        def name=(text)
          sleep(0.5) if text == "sidekiq.scheduler"
          super
        end
      end)
      Sidekiq::Scheduled::Poller.prepend(Module.new do
        def start
          File.write(#{starts.dump}, "started\n", mode: "a")
          super
        end
      end)
    RUBY
    order(["one", 1])
    wait_for_end(server, %w[one])

    assert_predicate(server.stop, :success?)
    assert_equal("started\n", File.read(starts))
  end

  def test_a_scheduler_that_has_died_is_replaced
    server = swarm("count: 1", required: jobs_and(<<~RUBY))
      Sidekiq.configure_server { |config| config[:poll_interval_average] = 1 }
      class EndScheduler < Job
        def perform(name)
          nil until (scheduler = Thread.list.find { |thread| thread.name == "sidekiq.scheduler" })
          scheduler.kill.join
          super
        end
      end
    RUBY
    order(["end"], job: "EndScheduler")
    wait_for_end(server, %w[end])
    due = { class: "Job", queue: "default", jid: "0" * 24, args: ["due"], retry: false, created_at: Time.now.to_f }
    @redis.call("ZADD", "schedule", 1, JSON.generate(due))
    wait_for_end(server, %w[due])

    assert_predicate(server.stop, :success?)
  end

  # Nobody waits for it until the time to be quiet is over.
  def test_a_job_that_ends_its_thread_keeps_no_node_from_its_end
    server = swarm("count: 1, concurrency: 2")
    order(["last"], job: "LastJob")
    wait_for_begin(server, "last")
    server.refork
    order(["after"])
    wait_for_end(server, %w[after])

    assert_predicate(server.stop, :success?)
  end

  private

  def starts = File.join(@folder, "starts")

  # @return [String] a file to require
  def jobs_and(text)
    File.join(@folder, "jobs_and_more.rb").tap do |path|
      File.write(path, "require #{JOBS.dump}\nrequire \"sidekiq/scheduled\"\n#{text}")
    end
  end
end
