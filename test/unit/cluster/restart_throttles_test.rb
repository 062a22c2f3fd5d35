# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "support/clock"
require_relative "support/fakes"

# Which workers are not restarted at full speed, and what is said about it.
class ClusterRestartThrottlesTest < Minitest::Test
  include ClusterSupport::Clock
  include ClusterSupport::Listening

  def setup
    super
    @throttles = Pando::Cluster::RestartThrottles.new
  end

  def die(times, slot: 0)
    times.times do
      @throttles.fail(:worker, "signal KILL", slot: slot)
      elapse((@throttles.due || now) - now + 0.001)
    end
  end

  def test_a_few_deaths_are_made_up_for_at_once
    die(3)

    assert @throttles.over?(:worker, slot: 0)
    assert_empty events("restart.throttled")
  end

  def test_more_are_damped_with_an_event_for_each_wait
    die(6)
    throttled = events("restart.throttled").map(&:payload)

    assert_equal([0.25, 0.5, 1.0], throttled.map { |payload| payload[:seconds] })
    assert_equal({ role: :worker, slot: 0, rate: 4, seconds: 0.25, reason: "signal KILL" }, throttled.first)
  end

  def test_a_place_waits_alone
    die(3)
    @throttles.fail(:worker, "signal KILL", slot: 0)

    refute @throttles.over?(:worker, slot: 0)
    assert @throttles.over?(:worker, slot: 1)
    assert @throttles.over?(:mold)
  end

  def test_when_it_is_quiet_again_all_is_forgotten_and_told
    die(5)
    @throttles.reconcile
    assert_equal 1, @throttles.states.size
    assert_empty events("restart.recovered")
    elapse(5 * Pando::Cluster::Backoff::QUIET)
    @throttles.reconcile

    assert_equal [{ role: :worker, slot: 0 }], events("restart.recovered").map(&:payload)
    assert_empty @throttles.states
  end

  def test_the_question_whether_it_is_quiet_tells_nothing
    throttle = Pando::Cluster::RestartThrottle.new({ role: :admin }, limit: 2.0, free: 3)
    5.times { throttle.fail("signal KILL") && elapse((throttle.due || now) - now + 0.001) }
    elapse(12 * Pando::Cluster::Backoff::QUIET)
    assert_predicate throttle, :calm?
    assert_empty events("restart.recovered")
    assert_equal [true, true], [throttle.settle, throttle.settle]

    assert_equal [{ role: :admin }], events("restart.recovered").map(&:payload)
  end

  def test_refusals_that_come_together_are_told_once_and_so_is_their_end
    3.times { @throttles.fail(:worker, "no process", refused: true, slot: 0) }
    4.times do
      elapse(@throttles.due - now + 0.001)
      @throttles.fail(:worker, "no process", refused: true, slot: 0)
    end
    elapse(5 * Pando::Cluster::Backoff::QUIET)
    @throttles.reconcile

    assert_equal %w[restart.throttled restart.recovered], event_names
  end

  def test_what_was_never_damped_recovers_in_silence
    die(2)
    elapse(5 * Pando::Cluster::Backoff::QUIET)
    @throttles.reconcile

    assert_empty event_names
    assert_empty @throttles.states
  end

  def test_what_the_status_says
    die(3)
    @throttles.fail(:worker, "signal SEGV", slot: 0)
    state = @throttles.states.first

    assert_in_delta 0.25, state.delete(:seconds), 0.02
    assert_equal({ role: :worker, slot: 0, rate: 4, reason: "signal SEGV" }, state)
  end

  def test_the_status_says_nothing_of_one_that_only_keeps_its_pace
    @throttles.pace(:worker, now, slot: 0)

    refute @throttles.over?(:worker, slot: 0)
    assert_empty @throttles.states
  end

  def test_every_role_has_a_longest_wait
    { worker: 2.0, mold: 2.0, reactor: 1.0, service: 30.0 }.each do |role, longest|
      waits = Array.new(20) do
        @throttles.fail(role, "why").tap { elapse((@throttles.due || now) - now + 0.001) }
      end

      assert_in_delta longest, waits.last, 0.01, role
    end
  end
end
