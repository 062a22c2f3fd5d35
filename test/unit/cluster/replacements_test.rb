# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "support/simulation"

# Workers that had better be replaced, as their rows say.
class ReplacementsTest < Minitest::Test
  include ClusterSupport::Clock
  include ClusterSupport::Listening

  Conditions = Struct.new(:obstacle)

  def setup
    super
    @cluster = ClusterSupport::Simulation.new(workers: 3)
    @cluster.boot
    @conditions = Conditions.new
    @replacements = Pando::Cluster::Replacements.new(@cluster.roster, @cluster.generations, @cluster.rollout,
                                                     @conditions)
  end

  def worker(slot = 0) = @cluster.worker_in(slot)
  def past(seconds = Pando::Cluster::Replacements::TICK) = elapse(seconds + 0.001)

  # It has served for long, and wants no more.
  def wear(child, cpu: Pando::Cluster::Replacements::LIFE)
    child.row.major_gc_due = true
    child.define_singleton_method(:sample) { Struct.new(:cpu).new(cpu) }
  end

  # The workers that it has chosen so far, by slot.
  def look
    past
    @replacements.reconcile
    chosen
  end

  def chosen = @cluster.roster.workers.select(&:replacement_wanted?).map(&:slot)

  def test_who_says_nothing_is_left_alone
    assert_empty look
  end

  def test_its_successor_serves_before_it_goes
    old = worker
    wear(old)

    assert_equal [0], look
    assert_predicate old, :ready?
    @cluster.settle
    refute_equal old, worker
    refute_predicate worker, :replacement_wanted?
    assert_equal([Pando::Cluster::Replacements::REASON], events("worker.leaving").map { |event| event[:reason] })
  end

  def test_one_after_another_and_not_at_once
    3.times { |slot| wear(worker(slot)) }
    first = look
    @cluster.settle

    assert_equal 1, first.size
    assert_empty look
    past(Pando::Cluster::Replacements::SPACING)
    second = look

    assert_equal 1, second.size
    refute_equal first, second
  end

  def test_who_has_hardly_been_worth_his_fork_stays
    wear(worker, cpu: 1.0)
    wear(worker(1), cpu: 6.0)

    assert_equal [1], look
  end

  def test_not_while_something_else_goes_on
    wear(worker)
    @conditions.obstacle = "a reload is under way"
    assert_empty look

    @conditions.obstacle = nil
    @cluster.die(worker(2))
    assert_empty look
    @cluster.settle
    assert_equal [0], look
  end

  # Its successor serves.
  def test_a_draining_worker_is_not_waited_for
    @cluster.drain(worker(2))
    wear(worker)

    assert_equal [0], look
  end

  def test_not_while_a_generation_is_on_its_way
    wear(worker)
    @cluster.generations.refork("test")

    assert_empty look
  end

  def test_the_last_one_serves_until_its_successor_does
    [1, 2].each { |slot| @cluster.die(worker(slot)) }
    @cluster.settle
    old = worker
    wear(old)
    look
    @cluster.settle(20) { refute_empty @cluster.roster.ready_workers }

    refute_equal old, worker
  end
end
