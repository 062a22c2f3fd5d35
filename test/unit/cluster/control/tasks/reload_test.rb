# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "../../support/clock"

# `pando reload`, as its client sees it.
class ReloadTaskTest < Minitest::Test
  include ClusterSupport::Clock

  # Stands for the monitor's Reload.
  Reload = Struct.new(:wanted) do
    def request(reason, now:) = self.wanted = [reason, now]
    def wanted? = !wanted.nil?
  end
  Cluster = Struct.new(:reload)

  def setup
    super
    @reload = Reload.new
    @task = Pando::Cluster::Control::Tasks::ReloadRelease.new(Cluster.new(@reload)).tap(&:start)
    @task.check
  end

  def tell(name, **facts) = @task.observe(Pando::Event.new(name, facts))

  def start
    @reload.wanted = nil
    tell("reload.started")
    @task.check
  end

  def test_it_is_over_when_the_reload_is
    start
    refute_predicate @task, :over?
    tell("reload.finished", seconds: 1.5)

    assert_equal "every worker runs the new release, after 1.5 s", @task.achieved
  end

  def test_the_end_of_the_reload_before_it_does_not_count
    tell("reload.failed", reason: "the one before")
    @task.check

    refute_predicate @task, :over?
    start
    tell("reload.failed", reason: "no gem")
    assert_equal "no gem", @task.failure
  end

  # `pando reload --cancel`: the monitor tells of the end of the reload before it alone.
  def test_it_ends_when_the_reload_is_cancelled_before_it_has_begun
    tell("reload.failed", reason: "cancelled")
    @reload.wanted = nil
    @task.check

    assert_equal "the reload was cancelled before it began", @task.failure
  end
end
