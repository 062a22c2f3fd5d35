# frozen_string_literal: true

require "test_helper"
require_relative "../support/clock"
require_relative "../support/fakes"
require "pando/cluster/monitor"

# When memory is short one worker goes at a time, whatever pool it is of.
class MemoryShortageTest < Minitest::Test
  include ClusterSupport::Clock

  Guard = Struct.new(:departing, :seeing_off) do
    def departing? = departing
    def seeing_off? = seeing_off
  end

  # Stands for Sys::ControlGroup.
  Group = Struct.new(:memory)

  def setup
    super
    options = ClusterSupport.options(memory: Pando::Cluster::Memory::Limits.new(group: 80))
    @group = Group.new
    @shortage = Pando::Cluster::Memory::Shortage.new(options, nil, group: @group)
    fill(85)
    @web, @nodes = Array.new(2) { Guard.new(false, false).tap { |guard| @shortage.join(guard) } }
  end

  # @param percent [Integer] of the control group's limit in use
  def fill(percent)
    @group.memory = Struct.new(:used, :limit, :percent).new(percent, 100, percent)
    @shortage.look([])
  end

  def allowed = [@web, @nodes].select { |guard| @shortage.relief_due?(guard, now) }

  def test_its_effect_is_waited_for_in_all_pools
    assert_equal([@web, @nodes], allowed)
    @shortage.relieved(now)
    elapse(1.9)
    assert_empty(allowed)
    elapse(0.2)

    assert_equal([@web, @nodes], allowed)
    @shortage.relieved(now)
    elapse(3)
    assert_empty(allowed, "twice as long, whichever it was")
    fill(50)
    assert_equal([@web, @nodes], allowed)
  end

  def test_who_is_about_to_go_is_waited_for_in_all_pools_and_his_successor_in_his_own
    @nodes.departing = @nodes.seeing_off = true
    assert_empty(allowed)
    @nodes.seeing_off = false

    assert_equal([@web], allowed)
  end

  def test_in_need_one_goes_at_each_look
    fill(95)
    @nodes.departing = @nodes.seeing_off = true
    assert_equal([@web, @nodes], allowed)
    @shortage.relieved(now)
    assert_empty(allowed, "not of two pools at once")
    elapse(0.05)

    assert_equal([@web, @nodes], allowed)
  end
end
