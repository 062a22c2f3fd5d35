# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"

# `pando scale` of one of several pools.
class ScaleTaskTest < Minitest::Test
  Worker = Struct.new(:ready) { def ready? = ready }
  Roster = Struct.new(:workers)

  # Stands for the pool's.
  class Rollout
    attr_reader :size

    def resize(size) = @size = size
  end

  Pool = Struct.new(:name, :roster, :rollout)

  # Stands for Pools, and for the monitor.
  class Cluster
    def pools = self
    def several? = true
    def about(_pool) = yield
  end

  def setup
    super
    @pool = Pool.new("jobs", Roster.new([Worker.new(true)]), Rollout.new)
    @task = Pando::Cluster::Control::Tasks::Scale.new(Cluster.new, @pool, 2).tap(&:start)
    @task.check
  end

  def tell(**facts) = @task.observe(Pando::Event.new("pool.failing", { reason: "no luck", **facts }))

  def test_it_is_over_when_all_are_ready
    refute_predicate @task, :over?
    @pool.roster.workers << Worker.new(true)
    @task.check

    assert_equal "jobs: 2 workers are ready", @task.achieved
  end

  def test_who_cannot_be_booted_is_not_waited_for
    tell(pool: "web")
    refute_predicate @task, :over?
    tell(pool: "jobs")

    assert_equal "jobs cannot be booted, and is to have 2 workers when it can: no luck", @task.failure
  end
end
