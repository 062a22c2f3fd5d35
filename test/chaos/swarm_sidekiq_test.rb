# frozen_string_literal: true

require "test_helper"
require "support/sidekiq_swarm"

# Promise: whatever happens to the nodes, each job's effect is there, and twice only where its node was killed.
#
#     SWARM_JOBS=100000 SWARM_NODES=4 SWARM_REFORKS=10 SWARM_KILLS=20 bin/test test/chaos/swarm_sidekiq_test.rb
class SwarmSidekiqTest < Minitest::Test
  include Support::SidekiqSwarm

  JOBS = Integer(ENV.fetch("SWARM_JOBS", 2000))
  NODES = Integer(ENV.fetch("SWARM_NODES", 2))
  REFORKS = Integer(ENV.fetch("SWARM_REFORKS", 2))
  KILLS = Integer(ENV.fetch("SWARM_KILLS", 3))
  THREADS = 5
  # Seconds that a job takes: they last from one kill to the next.
  LENGTH = 1.0 * NODES * THREADS / (JOBS / (KILLS + REFORKS))

  def test_each_job_is_done_and_twice_only_by_a_node_that_was_killed
    server = swarm("count: #{NODES}, concurrency: #{THREADS}, refork: :manual")
    began = now
    reforks = Thread.new { REFORKS.times { refork(server) } }
    names, victims = kill_some_while_they_work(server)
    reforks.value
    wait_for_end(server, names, patience: 120)
    report(server, victims, now - began)

    assert_empty(repeated(server) { |pids| (pids[0..-2] - victims).any? }, -> { server.output })
    assert_empty(server.events("worker.lost").map { |event| event["pid"] } - victims, -> { server.output })
    assert_predicate(server.stop, :success?)
    assert_empty(@redis.call("KEYS", "pando:sidekiq:held:*") + @redis.call("HKEYS", "pando:sidekiq:holders"))
  end

  private

  # @return [Array(Array<String>, Array<Integer>)] the names of all jobs, the pids of the killed nodes
  def kill_some_while_they_work(server)
    batches = Array.new(JOBS) { |number| "job#{number}" }.each_slice((JOBS / (KILLS + 1.0)).ceil).to_a
    victims = batches.first(KILLS).map do |batch|
      order(*batch.map { |name| [name, LENGTH] })
      wait_for_begin(server, batch[batch.size / 2])
      kill_one(server)
    end
    order(*batches.last.map { |name| [name, LENGTH] })
    [batches.flatten, victims]
  end

  # Perhaps one that is leaving, or has left when it is its turn.
  # @return [Integer] its pid
  def kill_one(server)
    victim = node_pids(server).sample
    server.wait_for("worker.lost", "worker.exited", "worker.failed", "worker.killed", pid: victim) do
      Process.kill("KILL", victim)
    end
    victim
  rescue Errno::ESRCH
    retry
  end

  # Until one comes through: its source may be the one that is killed.
  def refork(server)
    loop do
      started = wait_until(message: "a refork") do
        event = server.wait_for("refork.started", "refork.refused") { server.signal("USR2") }
        event if event["event"] == "refork.started"
      end
      ended = server.wait_past("refork.finished", "generation.discarded", patience: 60,
                                                                          generation: started["generation"])
      return if ended["event"] == "refork.finished"
    end
  end

  # @yieldparam pids [Array<Integer>] of nodes that have begun a job more than once
  def repeated(server, &block) = began(server).select { |_, pids| pids.size > 1 && block.call(pids) }

  def report(server, victims, seconds)
    puts "#{JOBS} jobs in #{seconds.round} s on #{NODES} nodes, #{server.events("refork.finished").size} reforks, " \
         "#{victims.size} kills: #{repeated(server) { true }.size} jobs were begun twice, " \
         "#{ended(server).count { |_, pids| pids.size > 1 }} ended twice"
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
