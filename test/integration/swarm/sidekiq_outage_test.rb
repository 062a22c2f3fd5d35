# frozen_string_literal: true

require "etc"
require "test_helper"
require "support/sidekiq_swarm"

# Promise: while Redis is away nodes stay and wait without work for the processor; when it is back they go on, and no
# job is lost or done twice.
#
#     SWARM_OUTAGE=30 bin/test test/integration/swarm/sidekiq_outage_test.rb
class SidekiqOutageTest < Minitest::Test
  include Support::SidekiqSwarm

  SECONDS = Float(ENV.fetch("SWARM_OUTAGE", 1))
  # Of a processor's time in an outage, beside what it costs to notice it.
  SHARE = 0.05
  NOTICING = 0.3

  def test_redis_stands_still_and_then_dies_and_starts_again
    server = swarm("count: 2, concurrency: 3")
    nodes = node_pids(server)
    go_through(server, "still") do |away|
      @redis.signal("STOP")
      away.call
    ensure
      @redis.signal("CONT")
    end
    go_through(server, "dead") do |away|
      @redis.stop
      away.call
      @redis.start
    end

    assert_equal(nodes, node_pids(server))
    wait_for_word(server, nodes) if SECONDS > 15 # each has had to notice
    assert_empty(began(server).merge(ended(server)) { |_, *pids| pids }.reject { |_, pids| pids.map(&:size) == [1, 1] })
    assert_predicate(server.stop, :success?)
    assert_empty(@redis.call("KEYS", "pando:sidekiq:held:*"))
  end

  private

  def keep? = true

  # @yieldparam away [#call] to be called while Redis is away
  def go_through(server, name)
    names = Array.new(60) { |number| "#{name}#{number}" }
    order(*names.map { |each| [each, 0.02] }, [name, 0, "go#{name}"])
    wait_for_begin(server, name)
    yield(-> { be_patient(server, name) })
    wait_for_end(server, [*names, name])
  end

  # One outage after the other may be the same to a node.
  def wait_for_word(server, nodes)
    wait_until(message: -> { server.output }) do
      lost, found = %w[broker.lost broker.found].map { |name| server.events(name).map { |event| event["pid"] } }
      found.uniq.sort == nodes && lost.sort == found.sort
    end
  end

  # One job ends while nobody can be told.
  def be_patient(server, name)
    let_go(server, "go#{name}")
    wait_until(message: "the end of a job that runs") { ended(server).key?(name) }
    before = cpu_seconds(server)
    IO.select(nil, nil, nil, SECONDS)
    used = cpu_seconds(server) - before
    puts "#{SECONDS} s without Redis: #{used.round(2)} s of CPU time of #{node_pids(server).size} nodes"

    assert_operator(used, :<, node_pids(server).size * ((SHARE * SECONDS) + NOTICING))
  end

  # utime and stime of all nodes, proc(5)
  def cpu_seconds(server)
    node_pids(server).sum do |pid|
      File.read("/proc/#{pid}/stat")[/\) (.*)/m, 1].split.values_at(11, 12).sum(&:to_f)
    end / Etc.sysconf(Etc::SC_CLK_TCK)
  end
end
