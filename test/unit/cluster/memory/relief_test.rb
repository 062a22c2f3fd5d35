# frozen_string_literal: true

require "test_helper"
require "pando/cluster/memory/relief"
require_relative "../support/clock"

# When memory is short one worker goes at a time, whatever pool it is of.
class MemoryReliefTest < Minitest::Test
  include ClusterSupport::Clock

  Guard = Struct.new(:departing, :seeing_off) do
    def departing? = departing
    def seeing_off? = seeing_off
  end

  def setup
    super
    @shortage = Struct.new(:critical) { def critical? = critical }.new(false)
    @relief = Pando::Cluster::Memory::Relief.new(@shortage)
    @web, @nodes = Array.new(2) { Guard.new(false, false).tap { |guard| @relief.join(guard) } }
  end

  def allowed = [@web, @nodes].select { |guard| @relief.allowed?(guard, now) }

  def test_its_effect_is_waited_for_in_all_pools
    assert_equal([@web, @nodes], allowed)
    @relief.note(now)
    elapse(1.9)
    assert_empty(allowed)
    elapse(0.2)

    assert_equal([@web, @nodes], allowed)
    @relief.note(now)
    elapse(3)
    assert_empty(allowed, "twice as long, whoever it was")
    @relief.reset
    assert_equal([@web, @nodes], allowed)
  end

  def test_who_is_about_to_go_is_waited_for_in_all_pools_and_his_successor_in_his_own
    @nodes.departing = @nodes.seeing_off = true
    assert_empty(allowed)
    @nodes.seeing_off = false

    assert_equal([@web], allowed)
  end

  def test_in_need_one_goes_at_each_look
    @shortage.critical = true
    @nodes.departing = @nodes.seeing_off = true
    assert_equal([@web, @nodes], allowed)
    @relief.note(now)
    assert_empty(allowed, "not of two pools at once")
    elapse(0.05)

    assert_equal([@web, @nodes], allowed)
  end
end
