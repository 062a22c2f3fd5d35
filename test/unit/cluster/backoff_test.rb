# frozen_string_literal: true

require "test_helper"
require "pando/cluster"
require "pando/cluster/backoff"

class ClusterBackoffTest < Minitest::Test
  Backoff = Pando::Cluster::Backoff

  def setup
    @backoff = Backoff.new
  end

  def test_without_a_failure_there_is_no_wait
    assert @backoff.over?(0.0)
    assert_nil @backoff.due(0.0)
    assert_equal 0, @backoff.failures
  end

  def test_each_failure_doubles_the_wait_to_a_limit
    delays = Array.new(12) { @backoff.fail(100.0) }

    assert_equal [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0], delays.first(9)
    assert_equal 30.0, delays.last
    assert_equal 12, @backoff.failures
  end

  def test_when_it_is_over
    @backoff.fail(100.0)

    refute @backoff.over?(100.2)
    assert_in_delta 100.25, @backoff.due(100.2)
    assert @backoff.over?(100.25)
    assert_nil @backoff.due(100.25)
  end

  def test_reset
    3.times { @backoff.fail(100.0) }
    @backoff.reset

    assert @backoff.over?(100.0)
    assert_equal 0.25, @backoff.fail(100.0)
  end

  def test_failures_long_past_count_no_more
    3.times { @backoff.fail(100.0) }

    assert_equal 2.0, @backoff.fail(100.0 + Backoff::MEMORY)
    assert_equal 0.25, @backoff.fail(200.1 + Backoff::MEMORY)
    assert_equal 1, @backoff.failures
  end
end
