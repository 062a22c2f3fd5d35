# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "support/clock"
require_relative "support/fakes"

# When requests are welcome, and which health check is told.
class DrainTest < Minitest::Test
  include ClusterSupport::Clock
  include ClusterSupport::Listening

  # Stands for the shutdown.
  class Shutdown
    attr_reader :reasons

    def initialize = @reasons = []
    def begun? = reasons.any?
    def gracefully(reason) = reasons << reason
  end

  def setup
    super
    @roster = ClusterSupport.roster
    @shutdown = Shutdown.new
    set_up
  end

  def set_up(**options)
    @drain = Pando::Cluster::Drain.new(@roster, @shutdown, ClusterSupport.options(health: "/up", **options))
  end

  def child(role) = @roster.admit(role, 0, 0, ClusterSupport::FakeLink.new, nil)
  def reactor = @reactor ||= child(:reactor)
  def worker = child(:worker).tap(&:become_ready)
  def told = reactor.link.orders

  def turn
    @drain.proceed
    told.last
  end

  # --- what the reactor hears

  def test_welcome_as_soon_as_a_worker_is_ready_and_for_as_long_as_one_is
    reactor
    one = child(:worker)
    assert_equal :unwelcome, turn
    one.become_ready
    assert_equal :welcome, turn
    @roster.dismiss(one)

    assert_equal :unwelcome, turn
  end

  def test_unwelcome_in_a_drain_and_a_stop
    reactor
    worker
    turn
    @drain.begin("test")
    assert_equal :unwelcome, turn
    @drain.undo("test")
    assert_equal :welcome, turn
    @shutdown.gracefully("TERM")

    assert_equal :unwelcome, turn
  end

  def test_it_is_told_of_a_change_once_and_then_each_second
    reactor
    3.times { turn }
    assert_equal 1, told.size
    assert_in_delta 1, @drain.due - now, 0.1
    elapse(1)
    2.times { turn }

    assert_equal 2, told.size
  end

  def test_a_new_one_is_told_at_once
    reactor
    turn
    @roster.dismiss(@reactor)
    @drain.proceed
    @reactor = nil
    reactor
    turn

    assert_equal [:unwelcome], told
  end

  def test_a_full_link_is_tried_again_soon
    reactor.link.deaf = true
    turn
    assert_in_delta 0, @drain.due - now, 0.1
    reactor.link.deaf = false
    elapse(0.1)

    assert_equal :unwelcome, turn
  end

  def test_nobody_is_told_where_nobody_can_ask
    set_up(health: nil)
    reactor
    turn

    assert_empty told
    assert_nil @drain.due
    refute_predicate @drain, :visible?
  end

  # --- before a stop

  def test_without_a_delay_a_stop_begins_at_once
    @drain.stop("TERM")

    assert_equal ["TERM"], @shutdown.reasons
    assert_empty event_names
  end

  def test_a_stop_begins_after_the_delay
    set_up(drain_delay: 5.0)
    @drain.stop("TERM")
    assert_predicate @drain, :stop?
    assert_in_delta 5, @drain.due - now, 0.5
    elapse(4)
    turn
    assert_empty @shutdown.reasons
    elapse(1.1)
    2.times { turn }

    assert_equal ["TERM"], @shutdown.reasons
    assert_equal [{ reason: "TERM", seconds: 5.0 }], events("drain.started").map(&:payload)
  end

  def test_who_asks_twice_does_not_wait
    set_up(drain_delay: 5.0)
    2.times { @drain.stop("TERM") }

    assert_equal ["TERM"], @shutdown.reasons
  end

  def test_what_was_drained_before_counts
    set_up(drain_delay: 5.0)
    @drain.begin("pando drain")
    elapse(3)
    @drain.stop("TERM")
    assert_in_delta 2, events("drain.started").last[:seconds], 0.1
    set_up(drain_delay: 5.0)
    @drain.begin("pando drain")
    elapse(6)
    @drain.stop("TERM")

    assert_equal ["TERM"], @shutdown.reasons
  end

  def test_another_stop_that_was_faster_is_not_followed_by_ours
    set_up(drain_delay: 5.0)
    @drain.stop("TERM")
    @shutdown.reasons << "INT"
    elapse(6)
    @drain.proceed

    assert_equal ["INT"], @shutdown.reasons
    assert_nil @drain.due
  end

  def test_events_are_told_once
    2.times { @drain.begin("a") }
    2.times { @drain.undo("b") }

    assert_equal %w[drain.started drain.ended], event_names
  end
end
