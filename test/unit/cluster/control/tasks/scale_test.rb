# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "../../support/clock"
require_relative "../../support/fakes"

# `pando scale` of one of several pools.
class ScaleTaskTest < Minitest::Test
  include ClusterSupport::Clock

  Worker = Struct.new(:slot, :ready, :job, :draining) do
    def ready? = ready
    def leaving? = !ready
    def draining? = !!draining
  end
  Roster = Struct.new(:workers) do
    def threads = 36
  end

  # Stands for the pool's.
  class Rollout
    attr_reader :size

    def scale(size) = (@size = size if size < 10)
    def others = 700
    def most(taken) = (1024 - taken) / 36
  end

  Generation = Struct.new(:forks?)
  Generations = Struct.new(:current, :occupation)
  Pool = Struct.new(:name, :roster, :rollout, :options, :generations)

  # Stands for Pools, and for the monitor.
  class Cluster
    def pools = self
    def several? = true
    def about(_pool) = yield
  end

  def setup
    super
    generations = Generations.new(Generation.new(true), nil)
    @pool = Pool.new("jobs", Roster.new([Worker.new(0, true, {})]), Rollout.new, ClusterSupport.options, generations)
    @task = Pando::Cluster::Control::Tasks::Scale.new(Cluster.new, @pool, 2).tap(&:start)
    @task.check
  end

  def tell(name = "pool.failing", **facts)
    @task.observe(Pando::Event.new(name, { pool: "jobs", reason: "no luck", **facts }))
  end

  def test_it_is_over_when_all_are_ready
    refute_predicate @task, :over?
    @pool.roster.workers << Worker.new(1, true, {})
    @task.check

    assert_equal "jobs: 2 workers are ready", @task.achieved
  end

  def test_one_that_keeps_its_connections_is_not_waited_for
    @pool.roster.workers.push(Worker.new(1, true, {}), Worker.new(2, false, {}, true))
    @task.check

    assert_equal "jobs: 2 workers are ready; 1 leaving worker keeps its connections for now", @task.achieved
  end

  def test_who_cannot_be_booted_is_not_waited_for
    tell(pool: "web")
    refute_predicate @task, :over?
    tell

    assert_equal "jobs cannot be booted, and gets 2 workers when it can: no luck", @task.failure
  end

  def test_workers_that_fail_again_and_again_are_not_waited_for
    2.times { tell("worker.failed", slot: 1) }
    tell("worker.failed", slot: 1, pool: "web")
    tell("fork.failed", role: :mold)
    refute_predicate @task, :over?
    tell("fork.failed", slot: 1, reason: "out of memory")

    assert_equal "1 of 2 workers are ready after 3 failures: out of memory", @task.failure
  end

  def test_more_threads_than_the_server_can_have_are_refused
    task = Pando::Cluster::Control::Tasks::Scale.new(Cluster.new, @pool, 10).tap(&:start)

    assert_match(/\Ajobs can have 1 to 9 workers with 36 threads each: .* other pools need 700 of them/,
                 task.failure)
    assert_equal 2, @pool.rollout.size
  end

  def test_it_does_not_wait_for_ever
    @pool.roster.workers << Worker.new(3, false, {})
    elapse 37
    @task.check
    refute_predicate @task, :over?
    elapse 2
    @task.check

    assert_equal "1 of 2 workers are ready after 38 s, and 1 worker still leaves", @task.failure
  end

  def test_what_it_waits_for
    assert_nil @task.obstacle
    @pool.generations.current[:forks?] = false
    @pool.generations.occupation = ["generation 1 (heal) is booting", 60.0]
    assert_equal ["generation 1 (heal) is booting", 60.0], @task.obstacle
    @pool.roster.workers << Worker.new(3, false, { request: "GET /slow" })

    reason, seconds = @task.obstacle
    assert_equal ["the worker in slot 3 is at GET /slow", 38.0], [reason, seconds.round(1)]
  end
end
