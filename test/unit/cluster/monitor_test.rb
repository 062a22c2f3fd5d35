# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "support/clock"
require_relative "support/fakes"

class ClusterTurnWatchTest < Minitest::Test
  include ClusterSupport::Clock
  include ClusterSupport::Listening

  def setup
    super
    @used = 0.0
    @watch = Pando::Cluster::TurnWatch.new(processor: -> { @used })
    @watch.turned(0.25)
  end

  def stalled = events("monitor.stalled").map { |event| [event[:seconds].round, event[:processor]] }

  def test_a_turn_that_waits_as_long_as_it_was_to
    elapse(20)

    assert_in_delta 0.0, @watch.turned(20)
    assert_empty stalled
  end

  def test_a_server_that_stood_still
    elapse(40)

    assert_in_delta 39.75, @watch.turned(0.25), 0.1
    assert_equal [[40, 0.0]], stalled
  end

  def test_a_turn_that_was_busy_is_told_and_moves_nothing
    elapse(3)
    @used += 2.5

    assert_in_delta 0.0, @watch.turned(0.25)
    assert_equal [[3, 2.5]], stalled
  end

  def test_the_next_turn_is_another
    elapse(40)
    @watch.turned(0.25)
    elapse(0.2)

    assert_in_delta 0.0, @watch.turned(0.25)
    assert_equal 1, stalled.size
  end
end
