# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"

# Which times count in a proof.
class CanaryStopwatchTest < Minitest::Test
  def setup
    @watch = Pando::Cluster::Canary::Stopwatch.new(->(now) { @heard == :always ? now : @heard }, 100.0)
  end

  def test_all_of_it_where_clients_are_always_heard
    @heard = :always
    assert_equal([0.0, 1.0, 2.5], [100.0, 101.0, 102.5].map { |now| @watch.read(now) })
  end

  def test_up_to_the_last_sign_of_life
    @heard = 99.5
    assert_in_delta(0.0, @watch.read(101.0))
    @heard = 101.5
    assert_equal([1.5, 1.5, 1.5], [102.0, 103.0, 110.0].map { |now| @watch.read(now) })
  end

  def test_not_a_standstill
    @heard = 101.0
    @watch.read(101.0)
    @heard = 117.0
    assert_in_delta(1.0, @watch.read(117.0))
    @heard = 118.0
    assert_in_delta(2.0, @watch.read(118.0))
  end

  def test_not_while_there_is_no_reactor
    @heard = nil
    assert_in_delta(0.0, @watch.read(110.0))
    @heard = 111.0
    @watch.read(111.0)
    @heard = 112.0
    assert_in_delta(1.0, @watch.read(112.0))
  end
end
