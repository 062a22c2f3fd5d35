# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "../support/fakes"

# What a process may have at most, between two measurements.
class ClusterMemoryGaugeTest < Minitest::Test
  include ClusterSupport::Listening

  MIB = 1024**2
  PID = 7

  # Stands for /proc.
  Source = Struct.new(:usage_now, :faults, :anonymous_now) do
    def usage(_pid) = usage_now
    def minor_faults(_pid) = faults
    def anonymous(_pid) = anonymous_now
  end

  def setup
    super
    @source = Source.new(Pando::Sys::Memory::Usage.new(30 * MIB, 20 * MIB, 50 * MIB), 1000, 40 * MIB)
    gauge
  end

  def gauge(**options)
    @gauge = Pando::Cluster::Memory::Gauge.new(@source, clock: -> { 0.0 }, **options)
    @gauge.measure(PID)
  end

  def grown = [@gauge.most(PID) - (20 * MIB), @gauge.pss(PID) - (30 * MIB)]

  def test_each_fault_is_a_page
    @source.faults += 10

    assert_equal [10 * Pando::Sys::Memory::PAGE] * 2, grown
  end

  def test_pages_of_another_size
    gauge(page: 65_536)
    @source.faults += 10

    assert_equal [655_360] * 2, grown
  end

  def test_a_fault_may_bring_a_huge_page
    @source.faults += 10
    @source.anonymous_now += 20 * MIB

    assert_equal [20 * MIB] * 2, grown
  end

  # Copies of what it had shared are in no count.
  def test_what_has_shrunk_has_been_written_to_all_the_same
    @source.faults += 10
    @source.anonymous_now -= 20 * MIB

    assert_equal [10 * Pando::Sys::Memory::PAGE] * 2, grown
  end

  def test_where_the_kernel_does_not_count
    @source.faults += 10
    @source.anonymous_now = nil

    assert_equal [10 * Pando::Sys::Memory::PAGE] * 2, grown
  end

  # As in gVisor.
  def test_it_says_that_the_kernel_has_no_figures
    @source.usage_now = nil
    @gauge.probe

    assert_equal([@gauge.obstacle], events("memory.unavailable").map { |event| event[:reason] })
    assert_match(%r{/proc/PID/smaps_rollup}, @gauge.obstacle)
  end

  def test_it_says_nothing_where_the_kernel_has_figures
    @gauge.probe

    assert_nil @gauge.obstacle
    assert_empty @events
  end

  def test_one_that_is_forgotten
    assert_equal [30 * MIB, 0], [@gauge.total([PID]), @gauge.total([8])]
    @gauge.forget(PID)

    assert_equal [0, nil, 0.0], [@gauge.total([PID]), @gauge.last(PID), @gauge.measured_at(PID)]
  end

  def test_one_that_was_never_measured
    assert_equal 1000 * Pando::Sys::Memory::PAGE, @gauge.most(8)
    assert_equal 0, @gauge.pss(8)
  end
end
