# frozen_string_literal: true

require "test_helper"
require "pando/cluster/generations/sources"

# Which worker is asked to fork the next mold.
class ClusterSourcesTest < Minitest::Test
  Worker = Struct.new(:name, :requests, :connections, :excluded_as_source, :engaged) do
    def ready? = true
    def fork_safe? = true
    def declined_while_busy? = false
    def condemned? = false
    def declined = nil
    def engaged? = !!engaged
    def excluded_as_source? = !!excluded_as_source
  end
  Roster = Struct.new(:ready_workers)

  # Stands for a Refork::Policy.
  class Policy
    def manual? = true
    def choose(workers) = workers.max_by(&:requests)
  end

  # There are none.
  class LostThreads
    def no_heir? = false
    def fit?(_worker) = true
  end

  def best_of(*workers)
    roster = Roster.new(workers)
    Pando::Cluster::Generations::Sources.new(roster, Policy.new, ->(_worker) { false }, LostThreads.new).best&.name
  end

  def test_one_without_connections_comes_before_a_warmer_one
    assert_equal :b, best_of(Worker.new(:a, 100, 5), Worker.new(:b, 60, 0), Worker.new(:c, 50, 0))
  end

  def test_but_not_one_that_has_served_much_less
    assert_equal :a, best_of(Worker.new(:a, 100, 5), Worker.new(:b, 49, 0))
  end

  def test_if_all_have_some_one_is_chosen_all_the_same
    assert_equal :a, best_of(Worker.new(:a, 100, 5), Worker.new(:b, 60, 1))
  end

  def test_one_that_is_at_a_long_request_is_not_preferred_for_that
    assert_equal :a, best_of(Worker.new(:a, 100, 5), Worker.new(:b, 90, 0, false, true))
  end

  def test_none
    assert_nil best_of
  end
end
