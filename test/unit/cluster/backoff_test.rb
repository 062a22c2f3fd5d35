# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"

class ClusterBackoffTest < Minitest::Test
  Backoff = Pando::Cluster::Backoff
  QUIET = Backoff::QUIET

  def setup
    @backoff = Backoff.new
    @now = 1000.0
  end

  # Fails at the end of each wait.
  # @return [Array<Float>] the waits
  def fail(times = 1, after: 0.0, **options)
    Array.new(times) do
      @now = (@backoff.due(@now) || @now) + after
      @backoff.fail(@now, **options)
    end
  end

  def test_without_a_failure_there_is_no_wait
    assert @backoff.over?(0.0)
    assert_nil @backoff.due(0.0)
    assert_equal 0, @backoff.failures
    assert @backoff.calm?(0.0)
  end

  def test_each_failure_doubles_the_wait_to_a_limit
    delays = fail(12)

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

  # Otherwise a slot that fails all the time would never be tried again.
  def test_a_failure_during_a_wait_lengthens_the_next_one
    @backoff.fail(100.0)

    assert_in_delta 0.05, @backoff.fail(100.2)
    assert_in_delta 100.25, @backoff.due(100.2)
    assert_in_delta 1.0, @backoff.fail(100.3)
  end

  def test_reset
    fail(3)
    @backoff.reset

    assert @backoff.over?(@now)
    assert_equal [0.25], fail
  end

  def test_for_each_quiet_time_one_is_forgotten
    fail(5)
    assert_equal [2.0], fail(after: 2 * QUIET)
    refute @backoff.calm?(@now)
    assert @backoff.calm?(@now + (5 * QUIET))
    assert_equal [0.25], fail(after: 100 * QUIET)
  end

  def test_waiting_is_no_quiet_time
    fail(9)

    assert_equal [30.0], fail
  end

  def test_now_and_then_is_not_damped_for_ever
    @backoff = Backoff.new(free: 3)

    assert_equal [0.0], fail(500, after: QUIET).uniq
    assert_equal 500, @backoff.failures
  end

  def test_ten_in_a_minute_are
    @backoff = Backoff.new(2.0, free: 3)

    assert_equal [0.0, 0.0, 0.0, 0.25, 0.5, 1.0, 2.0, 2.0, 2.0, 2.0], fail(10, after: 5.0)
    assert_operator @backoff.rate(@now), :>=, 6
    assert_equal 0, @backoff.rate(@now + 60)
  end

  def test_a_long_crash_is_made_up_for_in_bounded_time
    fail(1000)

    assert @backoff.calm?(@now + 30 + ((Backoff::WORST + 2) * QUIET))
  end

  def test_what_could_not_even_begin_is_never_free
    @backoff = Backoff.new(free: 3)

    assert_equal [0.25, 0.5], fail(2, refused: true)
  end

  def test_what_is_refused_is_tried_again_soon_for_ever
    assert_equal [0.25, 0.5, *[1.0] * 98], fail(100, refused: true)
    assert_equal 0, @backoff.failures
    assert_equal 100, @backoff.refusals
  end

  def test_refusals_make_no_later_wait_longer
    fail(10, refused: true)

    assert_equal [0.25, 0.5], fail(2)
    assert_equal 2, @backoff.failures
  end

  def test_failures_make_no_refusal_worse
    fail(6)

    assert_equal [0.25], fail(refused: true)
    assert_equal [16.0], fail
  end

  def test_refusals_are_over_with_a_success_or_a_quiet_time
    fail(5, refused: true)
    assert_predicate @backoff, :refused?
    refute @backoff.calm?(@now + QUIET)
    assert @backoff.calm?(@now + QUIET + 1)
    @backoff.succeed

    refute_predicate @backoff, :refused?
    fail(5, refused: true)
    assert_equal [0.25], fail(refused: true, after: QUIET)
  end

  def test_a_success_makes_up_for_those_in_a_row_but_not_for_the_rate
    fail(3)
    @backoff.succeed

    assert_equal 0, @backoff.failures
    assert_equal [2.0], fail
    assert_equal 1, @backoff.failures
  end
end
