# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require "support/upgrade_record"
require_relative "../support/generations_case"

# A leak that each mold inherits and hands down is told, and ended by a boot from cold.
class ColdBootsTest < Minitest::Test
  include ClusterSupport::GenerationsCase

  MIB = 1_048_576
  ColdBoots = Pando::Cluster::Generations::ColdBoots
  Conditions = Struct.new(:obstacle, :quiet?, :occupation)

  # Stands for Memory::Gauge: each new mold has what the test says.
  class Gauge
    Usage = Struct.new(:pss)
    attr_accessor :size, :known, :obstacle
    attr_writer :pss
    attr_reader :measured, :sizes

    def initialize
      @sizes = {} # PSS of those that differ, by pid
      @measured = []
      @known = true
    end

    def anonymous(_pid) = size
    def pss(pid) = last(pid) ? sizes.fetch(pid, @pss) : 0
    def last(pid) = (Usage.new(@pss) if known || measured.include?(pid))
    def measured_at(pid) = measured.rindex(pid)&.succ.to_f

    def measure(pid, budgeted: false)
      measured << pid if budgeted
      last(pid)
    end
  end

  # Stands for Sys::Scheduler: so much of each process.
  Clock = Struct.new(:seconds) do
    def cpu_time(_pid) = seconds
  end

  STEP = 100
  # Reforks after which the leak is known, by Lineage's rules.
  KNOWN = 10

  def setup
    super
    @gauge = Gauge.new
    @gauge.pss = 10 * MIB
    @clock = Clock.new(10.0)
    @conditions = Conditions.new(nil, true, nil)
    cluster(measuring: { gauge: @gauge, clock: @clock, conditions: @conditions })
    cluster.policy.threshold_value = 1_000_000 # it is the test that reforks
    @requests = 0
    resize
    cluster.boot
  end

  # A quarter of a mebibyte a request.
  def resize = @gauge.size = (100 * MIB) + (@requests * MIB / 4)

  def refork(count = KNOWN, leak: true)
    count.times do
      cluster.serve(cluster.worker_in(0), STEP)
      @requests += STEP
      resize if leak
      generations.refork("test")
      cluster.ready(cluster.upcoming_mold)
      settle_until_reboot
    end
  end

  def settle_until_reboot
    10.times do
      cluster.turn
      return if generations.upcoming&.purpose == :reboot

      cluster.starting.each { |child| cluster.ready(child) }
      cluster.leaving.each { |child| cluster.die(child, ClusterSupport.ended) }
    end
  end

  def cold_boot
    @requests = 0
    resize
    cluster.settle
  end

  def purposes = events("generation.current").map { |event| event[:purpose] }

  def look
    elapse(ColdBoots::LOOK)
    cluster.turn
  end

  def test_a_leak_is_told_and_ended
    refork
    told = events("leak.inherited").first
    cold_boot

    assert_equal [MIB / 4, 1000], [told[:bytes], told[:requests]]
    assert_equal "each request leaves 256.0 KiB in the memory that a mold hands down to the next one: 150.0 MiB " \
                 "after 200 requests of their line, 350.0 MiB after 1000", told[:reason]
    assert_includes told[:advice], "boots from cold beside its old processes"
    assert_equal told[:reason], events("reboot.started").first[:reason]
    assert_equal [:reboot], purposes.last(1)
    assert_equal [KNOWN + 1], cluster.generations_of_workers.uniq
    assert_equal [350 * MIB, 100 * MIB], events("reboot.finished").first.payload.values_at(:from, :to)
    assert_equal 0, generations.reforks.count
  end

  # The source serves on while its mold gets ready: the mold has none of that.
  def test_only_what_the_source_had_served_by_the_fork_counts
    KNOWN.times do
      source = cluster.worker_in(0)
      cluster.serve(source, STEP)
      @requests += STEP
      resize
      generations.refork("test")
      cluster.adopt(cluster.upcoming_mold)
      cluster.serve(source, STEP)
      cluster.ready(cluster.upcoming_mold)
      settle_until_reboot
    end

    assert_equal [MIB / 4, 1000], events("leak.inherited").first.payload.values_at(:bytes, :requests)
  end

  def test_no_leak_is_no_reason
    refork(2 * KNOWN, leak: false)

    assert_empty events("leak.inherited") + events("reboot.started")
  end

  # The second time it must have gone on for longer: what fills up once looks alike until it is full.
  def test_the_second_time_it_waits_for_twice_as_many_requests
    refork && cold_boot
    refork && look
    assert_equal 1, events("reboot.started").size
    assert_equal "its line is to serve 2000 requests first", generations.cold_boots.explain[:waits]

    refork && look
    cold_boot
    assert_equal 2, events("reboot.started").size
    refork && look
    assert_equal 3, events("reboot.started").size, "it is known to be a leak by now"
    assert_equal 1, events("leak.inherited").size
  end

  def test_it_waits_until_it_pays
    @clock.seconds = 0.001
    @gauge.pss = 100_000 * MIB
    refork
    assert_equal ["it does not pay yet", 1000], generations.cold_boots.explain.values_at(:waits, :requests)
    assert_empty events("reboot.started")

    @gauge.pss = MIB
    @clock.seconds = 1000.0
    look
    assert_equal 1, events("reboot.started").size
  end

  # It may keep its connections for hours.
  def test_a_draining_worker_is_not_waited_for
    refork(KNOWN - 1)
    drained = cluster.drain(cluster.worker_in(1))
    refork(1)
    look

    assert_predicate drained, :draining?
    assert_equal 1, events("reboot.started").size
  end

  def test_it_says_that_it_waits_for_a_worker
    refork(KNOWN - 1)
    @conditions.obstacle = @conditions.occupation = "a reload is under way"
    refork(1)
    @conditions.obstacle = @conditions.occupation = nil
    cluster.die(cluster.worker_in(1)).turn
    look
    assert_equal "a worker is starting or leaving", generations.cold_boots.explain[:waits]
    assert_empty events("reboot.started")

    cluster.ready(cluster.starting.first).turn
    assert_equal 1, events("reboot.started").size
  end

  # To measure a large process takes milliseconds, in which the monitor does nothing else.
  def test_it_measures_one_process_at_a_look
    @gauge.known = false
    @clock.seconds = 0.001
    refork
    counts = Array.new(3) { look && @gauge.measured.size }

    assert_equal [2, 3, 4], counts
    assert_equal cluster.roster.map(&:pid).sort, @gauge.measured.first(3).sort
    assert_equal "it does not pay yet", generations.cold_boots.explain[:waits]
  end

  # Where workers are replaced again and again, some are never measured.
  def test_those_not_measured_yet_count_as_much_as_the_others
    @gauge.known = false
    @gauge.pss = 100_000 * MIB
    refork
    @gauge.measured.clear
    @gauge.pss = worthwhile / 2 # there are three processes
    look
    assert_equal [1, 0], [@gauge.measured.size, events("reboot.started").size]

    @gauge.measured.clear
    @gauge.pss = worthwhile / 4
    look
    assert_equal [1, 1], [@gauge.measured.size, events("reboot.started").size]
  end

  # A mold that was just forked has little for itself.
  def test_each_time_the_mold_is_young_workers_are_measured_first
    @gauge.known = false
    @gauge.pss = 100_000 * MIB
    refork
    @gauge.sizes[cluster.current_mold.pid] = MIB
    @gauge.measured.clear
    @gauge.pss = (worthwhile * 0.6).to_i
    look
    assert_equal "it does not pay yet", generations.cold_boots.explain[:waits]

    2.times { look }
    assert_equal cluster.roster.map(&:pid).sort, @gauge.measured.sort
    assert_empty events("reboot.started")

    @gauge.pss = (worthwhile * 0.4).to_i
    look
    assert_equal 1, events("reboot.started").size
  end

  # @return [Integer] bytes of all processes up to which a cold boot pays
  def worthwhile
    ancestry = generations.cold_boots.instance_variable_get(:@ancestry)
    lineage = ancestry.lineage
    (lineage.leak.grown * ancestry.spent.first / (lineage.class::RHO * lineage.price)).to_i
  end

  def test_nothing_pays_while_nothing_is_measured
    @gauge.known = false
    @gauge.define_singleton_method(:last) { |_pid| nil }
    refork

    assert_equal "it does not pay yet", generations.cold_boots.explain[:waits]
  end

  def test_it_says_that_memory_cannot_be_known
    @gauge.known = false
    @gauge.obstacle = "there is no such file"
    refork
    3.times { look }

    assert_equal "there is no such file", generations.cold_boots.explain[:waits]
    assert_empty @gauge.measured
  end

  def test_one_that_is_reforked_by_hand_only_is_told
    cluster.policy.threshold_value = nil
    refork && look

    assert_includes events("leak.inherited").first[:advice], "`pando reload` does it"
    assert_empty events("reboot.started")
    assert_nil generations.cold_boots.due
    assert_includes generations.cold_boots.explain[:waits], "pando reload"
  end

  def test_it_waits_for_what_else_goes_on
    @conditions.obstacle = @conditions.occupation = "a reload is under way"
    refork
    5.times { look }
    assert_empty events("reboot.started")

    @conditions.obstacle = @conditions.occupation = nil
    look
    assert_equal 1, events("reboot.started").size
  end

  # Nothing else gives this memory back.
  def test_where_memory_is_short_it_does_not_wait_for_ever
    @conditions.obstacle = "memory is short"
    refork
    look
    assert_empty events("reboot.started")

    2.times { look }
    assert_equal 1, events("reboot.started").size
  end

  def test_one_that_fails_is_tried_again_later_and_later
    refork
    waits = Array.new(3) do
      cluster.die(cluster.upcoming_mold)
      cluster.settle
      elapse((seconds = events("reboot.failed").last[:seconds]) - 1)
      look_again = events("reboot.started").size
      cluster.turn
      assert_equal look_again, events("reboot.started").size, "too soon"
      look
      seconds
    end

    assert_equal [60.0, 120.0, 240.0], waits
    assert_equal [KNOWN], cluster.generations_of_workers.uniq
    assert_equal 4, events("reboot.started").size
    cold_boot
    assert_equal 1, events("reboot.finished").size
  end

  def test_after_a_failure_it_says_at_once_why_and_when_the_next_try_is
    refork
    cluster.die(cluster.upcoming_mold)
    cluster.settle
    elapse(10)

    reason = events("reboot.failed").last[:reason]
    assert_equal "the last one failed (#{reason}): the next try is in 50 s", generations.cold_boots.explain[:waits]
  end

  def test_the_kernel_has_no_process
    refork
    cluster.die(cluster.upcoming_mold)
    cluster.settle
    cluster.spawner.refusing = true
    elapse(ColdBoots::FIRST)
    look

    assert_includes events("reboot.failed").last[:reason], "no process"
    assert_equal 2, events("reboot.failed").size
    cluster.spawner.refusing = false
    assert_equal [0, 1], cluster.slots
  end

  def test_another_release_may_not_leak
    refork
    cold_boot
    generations.reload(["new"], [])
    cluster.ready(cluster.upcoming_mold).settle
    refork

    assert_equal 2, events("leak.inherited").size
    assert_equal 2, events("reboot.started").size, "it need not wait for the second time"
  end

  def test_a_release_that_is_rolled_back_does_not_shorten_the_wait_after_a_failure
    refork
    4.times do
      cluster.die(cluster.upcoming_mold)
      cluster.settle
      elapse(events("reboot.failed").last[:seconds])
      look
    end
    cluster.die(cluster.upcoming_mold)
    cluster.settle
    seconds = events("reboot.failed").last[:seconds]
    elapse(100)
    before = generations.cold_boots.explain
    known = generations.cold_boots.serialized_fields
    reload_watched
    generations.roll_back("test")
    cluster.settle

    assert_equal([before, known], [generations.cold_boots.explain, generations.cold_boots.serialized_fields])
    elapse(seconds - 200)
    look
    assert_equal 5, events("reboot.started").size, "too soon"
    elapse(100)
    look
    assert_equal [6, 1], [events("reboot.started").size, events("leak.inherited").size]
  end

  # Its line is that of the worker it was forked from.
  def test_a_mold_that_replaces_a_dead_one_inherits
    refork(KNOWN - 1)
    cluster.die(cluster.current_mold).settle
    refork(1)

    assert_equal 1, events("leak.inherited").size
  end

  def test_it_outlives_an_upgrade
    refork(KNOWN - 1)
    fields = generations.cold_boots.serialized_fields
    taken = ColdBoots.new(cluster.roster, generations, nil)
                     .take_up(Support::UpgradeRecord.of(generations.cold_boots))

    assert_equal fields, taken.serialized_fields
    assert_equal 900, fields[:"ancestry.lineage.requests"].last
  end
end
