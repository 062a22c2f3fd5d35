# frozen_string_literal: true

require "test_helper"
require "support/sidekiq_swarm"

# Promise: a swarm that has done jobs waits for its Redis, also when its nodes die meanwhile.
class SidekiqBrokerAwayTest < Minitest::Test
  include Support::SidekiqSwarm

  # More than a fault of the application would be borne with.
  MANY = 8

  def test_all_nodes_die_while_redis_is_down
    server = swarm("count: 3, concurrency: 2")
    order(["before", 0.01])
    wait_for_end(server, ["before"])
    mold = server.mold.pid
    @redis.stop
    node_pids(server).each { |pid| Process.kill("KILL", pid) }
    wait_until(message: -> { server.output }) { server.events("worker.failed").size >= MANY }
    @redis.start
    order(["after", 0.01])
    wait_for_end(server, ["after"])

    assert_equal(mold, server.mold.pid)
    assert_empty(server.events("generation.discarded"))
    assert_predicate(server.stop, :success?)
  end

  # It has never done a job, so the user who starts it wants to know.
  def test_a_first_boot_without_redis
    @redis.stop
    line = "node :sidekiq, count: 2, require: #{JOBS.inspect}"
    server = serve(command: "swarm", ready: false, config: line, listen: false, env: environment)

    assert_equal(1, server.wait_for_exit.exitstatus)
    @redis.start
  end

  private

  def keep? = true
end
