# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "../support/clock"

# The memory of a generation while its processes come and go.
class FootprintTest < Minitest::Test
  include ClusterSupport::Clock

  MIB = 1024**2
  Usage = Pando::Sys::Memory::Usage
  Process = Struct.new(:pid)

  # Stands for /proc: all processes have SHARED bytes in common, and OWN each. Counts the CPU time of each measurement.
  class Processes
    SHARED = 90 * MIB
    OWN = 4 * MIB

    attr_reader :seconds, :measured
    attr_accessor :living

    def initialize(each)
      @each = each
      @seconds = 0.0
      @measured = []
    end

    def usage(pid)
      @measured << pid
      @seconds += @each
      Usage.new((SHARED / living.size) + OWN, OWN, SHARED + OWN) if living.map(&:pid).include?(pid)
    end

    def minor_faults(_pid) = 0
    def anonymous(_pid) = nil
    def sum = SHARED + (OWN * living.size)
  end

  def setup
    super
    @newest = 0
    measuring(0.013)
  end

  # @param each [Float] seconds of CPU that it takes to measure one
  def measuring(each, processes: 9)
    @processes = Processes.new(each)
    @processes.living = Array.new(processes) { newcomer }
    @gauge = Pando::Cluster::Memory::Gauge.new(@processes, clock: -> { @processes.seconds })
    @footprint = Pando::Cluster::Generations::Survey::Footprint.new(@gauge)
  end

  def newcomer = Process.new(@newest += 1)

  def replace_one(index = 0)
    gone = @processes.living.delete_at(index)
    @gauge.forget(gone.pid)
    @processes.living << newcomer
  end

  # @return [Integer, nil] bytes
  def look(seconds = 0.5, **options)
    elapse(seconds)
    @footprint.measure(@processes.living, [], **options)
    @footprint.pss
  end

  def look_until_known = 100.times.find { look(0.02) } || flunk("it is not known")

  def test_it_is_known_though_one_after_another_is_replaced
    looks = Array.new(3600 * 2) do |count|
      replace_one if (count % 200).zero?
      look
    end
    known = looks.compact

    assert_operator known.size, :>=, looks.size - 50
    assert_in_delta @processes.sum, known.last, MIB
    assert_operator (known.max - known.min), :<=, MIB, "the sum stays as it is"
  end

  def test_of_64_workers_one_is_replaced_each_90_seconds
    measuring(0.003, processes: 65)
    looks = Array.new(3600 * 2) do |count|
      replace_one if (count % 180).zero?
      look
    end

    assert_operator looks.compact.size, :>=, looks.size - 150
  end

  # The pages that it shared are the others' from then on.
  def test_one_that_goes_takes_along_what_was_its_own_only
    look_until_known
    gone = @processes.living.pop
    @gauge.forget(gone.pid)
    sizes = Array.new(20) { look }

    assert_in_delta @processes.sum, sizes.first, 1024
    assert_in_delta @processes.sum, sizes.last, 1024
  end

  def test_one_that_comes_adds_what_is_its_own_only
    look_until_known
    @processes.living << newcomer
    sizes = Array.new(20) { look }

    assert_in_delta @processes.sum, sizes.first, 1024, "it is measured first"
    assert_in_delta @processes.sum, sizes.last, 1024
  end

  def test_half_of_them_are_replaced_at_once
    look_until_known
    4.times { replace_one }
    sizes = Array.new(20) { look(0.02) }

    assert_equal [nil] * 3, sizes.first(3)
    sizes.drop(3).each { |size| assert_in_delta @processes.sum, size, MIB }
  end

  # What its processes share with the former one's is not the same.
  def test_a_new_generation_is_measured_as_a_whole
    look_until_known
    @processes.measured.clear
    @footprint.begin_anew
    looks = Array.new(9) { look(0.02) }

    assert_equal [*[nil] * 8, @processes.sum], looks
    assert_equal @processes.living.map(&:pid), @processes.measured
  end

  def test_an_idle_server_is_measured_once_after_a_change
    measuring(0.0)
    look_until_known
    @processes.measured.clear
    2.times { replace_one }
    30.times { look(idle: true) }

    assert_equal @processes.living.map(&:pid).sort, @processes.measured.sort
  end

  def test_one_that_leaves_from_now_on_counts_with_what_it_shares
    look_until_known
    *members, leaver = @processes.living
    elapse(0.5)
    @footprint.measure(members, [leaver])

    assert_in_delta @processes.sum - Processes::OWN, @footprint.pss, 1024
  end
end
