# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "support/fakes"

# What becomes of an order that its addressee does not take.
class ClusterSpawnerTest < Minitest::Test
  include ClusterSupport::Listening

  Lanes = Struct.new(:descriptors)

  def setup
    super
    @roster = ClusterSupport.roster
    @spawner = Pando::Cluster::Spawner.new(@roster, ClusterSupport::FakePoller.new, [], ClusterSupport.options,
                                           Pando::Cluster::ColdBootCommand.new(["true"]), Lanes.new([]))
    ours, @theirs = Pando::Cluster::Link.pair
    @worker = @roster.admit(:worker, 0, 0, ours, nil)
    @worker.adopt(ClusterSupport::FakePidfd.new(77))
    @worker.become_ready
  end

  def fill(link)
    order = Pando::Cluster::Message.new(:drain)
    nil while link.send(order)
  end

  def test_a_worker_that_has_just_ended_leaves_its_mold_ordered
    @theirs.close

    assert_predicate @spawner.mold_from(@worker, 1), :ordered?
    assert_empty events("spawn.failed")
  end

  def test_a_worker_that_reads_nothing
    fill(@worker.link)

    assert_nil @spawner.mold_from(@worker, 1)
    assert_match(/pid 77 takes no orders/, events("spawn.failed").last[:reason])
    assert_equal [@worker], @roster.to_a
  end
end
