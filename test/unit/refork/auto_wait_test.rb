# frozen_string_literal: true

require "test_helper"
require_relative "support/auto_figures"

# A refork of `refork :auto` that is due, but has to wait.
class ReforkAutoWaitTest < Minitest::Test
  include ReforkSupport::AutoFigures

  def test_the_pause_between_two_grows_with_the_time_that_it_serves
    rules = Pando::Refork::Auto::Rules.for

    assert_equal([10.0, 10.0, 60.0, 120.0], [0, 200, 1200, 86_400].map { |lived| rules.pause(lived) })
  end

  def test_the_pause_does_not_hold_for_the_first_one
    @rules.floor = @rules.most = 30.0
    look(0, 100)
    assert_equal :refork, act(50, 400, seconds: 5.0)
    refork
    look(0, 100)
    waiting = look(200, 400, seconds: 29.0)

    assert_equal [:wait, "a refork is due, but the last one was less than 30.0 s ago"],
                 waiting.to_h.values_at(:action, :reason)
    assert_equal :refork, act(210, 400, seconds: 30.0)
  end

  def test_what_stands_against_it_is_waited_for
    look(0, 100)
    reload = Conditions.new("a reload is under way", true)

    assert_equal "a refork is due, but a reload is under way", look(50, 400, on: reload).reason
    assert_equal :refork, act(51, 400, on: Conditions.new(nil, true))
  end

  def test_a_quiet_moment_is_waited_for_but_not_for_ever
    look(0, 100)
    look(49, 100, seconds: 4.5)
    waiting = (0...10).map { |n| act(50 + n, 400, on: BUSY, seconds: 5.0 + (n * 0.5)) }

    assert_equal [[:wait] * 9, [:refork]], waiting.chunk_while { |one, other| one == other }.to_a
  end

  def test_a_quiet_moment_is_taken_at_once
    look(0, 100)

    assert_equal :wait, act(50, 400, on: BUSY, seconds: 1.0)
    assert_equal :refork, act(51, 400, on: Conditions.new(nil, true), seconds: 1.5)
  end

  # Such as one at full load, which would wait in vain.
  def test_a_server_that_has_been_busy_for_long_does_not_wait
    10.times { |n| look(n, 100, on: BUSY, seconds: n * 0.5) }

    assert_equal :refork, act(50, 400, on: BUSY, seconds: 5.0)
  end

  def test_a_moment_at_which_a_generation_begins_to_serve_is_not_quiet_if_workers_are_busy
    assert_equal "a refork is due, but Pando waits for a quiet moment", look(50, nil, on: BUSY, seconds: 0.0).reason
  end

  # A reload has ended (the policy is new), or a worker has taken long to start.
  def test_time_without_measurements_counts_as_busy_in_small_part
    assert_equal %i[wait refork], [act(50, nil, on: BUSY, seconds: 60.0), act(51, nil, on: BUSY, seconds: 62.5)]
  end

  # The server was frozen in the midst of a turn.
  def test_seconds_that_fall_are_no_quiet_moment
    look(0, 100, seconds: 30.0)

    assert_equal :wait, act(50, 400, on: BUSY, seconds: 10.0)
  end

  def test_what_stands_against_it_is_asked_only_when_it_matters
    assert_equal :wait, act(10, on: Struct.new(:quiet?).new(true)) # it has no obstacle to ask for
  end

  def test_the_last_quiet_moment_comes_through_an_upgrade
    look(0, 100)
    look(49, 100, seconds: 60.0)
    upgrade

    assert_equal "a refork is due, but Pando waits for a quiet moment",
                 look(50, 400, on: BUSY, seconds: 61.0).reason
  end
end
