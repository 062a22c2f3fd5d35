# frozen_string_literal: true

require "test_helper"
require_relative "../support/memory_guard_case"

# Who may measure, since measuring takes time.
class MemoryGuardMeasuringTest < Minitest::Test
  include ClusterSupport::MemoryGuardCase

  def test_measuring_takes_no_more_than_its_share_of_a_cpu
    start(worker: 30, total: 1000, workers: 4)
    @cost = 0.05
    4.times { |slot| grow(slot, 29.9) }
    began = now
    @source.measured.clear
    look(400)

    assert_in_delta(Pando::Cluster::Memory::Gauge::SHARE, @source.measured.size * @cost / (now - began), 0.004)
  end

  # It may have passed its limit at each look: it takes new pages all the time, and frees others.
  def hover(worker, size)
    @source[worker.pid] = size
    pages = 0
    @source.define_singleton_method(:minor_faults) do |pid|
      faults = super(pid)
      pid == worker.pid && faults ? faults + (pages += 8 * MIB / Pando::Sys::Memory::PAGE) : faults
    end
  end

  # However long a measurement takes.
  def test_who_is_always_near_the_limit_does_not_keep_the_others_out_of_the_total
    [0.0005, 0.003, 0.02].each do |cost|
      start(worker: 100, total: 270)
      @cost = cost
      look(40)
      assert_empty(events("memory.short"))
      hover(worker(0), 95)
      2.times { |slot| @source[worker(slot + 1).pid] = 90 }
      look(100)

      assert_equal(1, events("memory.short").size, "at #{cost} s")
      @events.clear
    end
  end

  def test_the_total_does_not_keep_other_pools_from_measuring
    [0.0005, 0.003, 0.02].each do |cost|
      two_pools(worker: 100, total: 1000)
      @cost = cost
      @looks.call(20)
      @source[@stranger.pid] = 150
      @looks.call(20)

      assert_equal([@stranger], @cluster.leaving, "at #{cost} s")
    end
  end

  def test_who_is_always_near_the_limit_does_not_keep_other_pools_from_measuring
    [0.0005, 0.003, 0.02].product([nil, 1000]).each do |cost, total|
      two_pools(worker: 100, **{ total: total }.compact)
      @cost = cost
      hover(worker(0), 95)
      @looks.call(20)
      @source[@stranger.pid] = 150
      @looks.call(20)

      assert_equal([@stranger], @cluster.leaving, "at #{cost} s, total #{total.inspect}")
    end
  end

  def test_somebody_who_asks_no_more_does_not_hold_up_the_others
    start
    @cost = 0.002 # a pause of 0.1 s
    @gauge.measure(Process.pid)

    assert_equal([false, false], [@gauge.turn_of?(:one), @gauge.turn_of?(:two)])
    elapse(0.3)
    assert_equal([false, true], [@gauge.turn_of?(:two), @gauge.turn_of?(:one)])
    @gauge.measure(Process.pid)
    refute(@gauge.turn_of?(:one))
    elapse(1.1)
    assert(@gauge.turn_of?(:one))
  end

  # With a guard each, which look at the same time.
  def two_pools(**limits)
    start(workers: 2, **limits)
    shortage = Pando::Cluster::Memory::Shortage.new(@options, @gauge, pressure: -> {}, group: nil)
    guards = Array.new(2) { |pool| guard(@cluster.roster.of(pool), @gauge, shortage) }
    @stranger = stranger(20)
    @looks = ->(times) { times.times { elapse(0.3) && guards.each(&:reconcile) } }
  end

  # A new generation is measured at once, and has a budget of its own for that.
  def test_it_can_measure_while_refork_auto_measures_all
    start(hard: 100, workers: 32)
    @cost = 0.004
    footprint = Pando::Cluster::Generations::Survey::Footprint.new(@gauge)
    children = @cluster.roster.to_a
    children.each { elapse(0.02) && footprint.measure(children, []) }
    assert_equal(children.map(&:pid), @source.measured)
    victim = worker(0)
    victim.row.start_job("GET", "/export", nil, nil)
    @source[victim.pid] = 101
    look

    assert_equal(["KILL"], victim.pidfd.signals)
  end
end
