# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "../support/simulation"

# How many workers fit into memory.
class SizingTest < Minitest::Test
  include ClusterSupport::Clock
  include ClusterSupport::Listening

  MIB = 1024**2
  Usage = Pando::Sys::Memory::Usage

  # Stands for /proc: each worker has what it is said to need, the other processes 30 MiB of their own.
  class Source
    attr_accessor :worker
    attr_writer :roster

    def usage(pid)
      size = @roster.by_pid(pid)&.worker? ? worker * MIB : 30 * MIB
      Usage.new(size, size)
    end

    def minor_faults(_pid) = 0
    def anonymous(_pid) = nil
  end

  # @param cpus [Integer] @param memory [Integer] MiB that there are
  def start(cpus: 8, memory: 4000, auto: true, need: 10, **limits)
    @memory = memory
    @cluster = ClusterSupport::Simulation.new(
      workers: cpus, auto_workers: auto,
      memory: Pando::Cluster::Memory::Limits.new(**limits.transform_values { |size| size * MIB })
    )
    @cluster.boot
    @source = Source.new
    @source.roster = @cluster.roster
    @source.worker = need
    @cluster.gauge = gauge = Pando::Cluster::Memory::Gauge.new(@source, clock: -> { 0.0 })
    @sizing = Pando::Cluster::Memory::Sizing.new(@cluster.roster, @cluster.rollout, @cluster.options, gauge,
                                                 available: -> { @memory * MIB })
  end

  def pass(seconds)
    seconds.times do
      elapse(1.01)
      @sizing.reconcile
      @cluster.settle(2)
    end
  end

  def ripen = @cluster.roster.workers.each { |worker| @cluster.serve(worker, Pando::Cluster::Memory::Sizing::RIPE) }
  def size = @cluster.rollout.size
  def scaled = events("workers.scaled").map { |event| event[:reason] }

  def test_with_enough_memory_there_is_one_for_each_cpu
    start
    ripen
    pass(120)

    assert_equal 8, size
    assert_empty scaled
  end

  # The rest: the monitor and the mold.
  def test_where_they_do_not_fit_there_are_as_many_as_do
    start(need: 60, memory: 400)
    pass(30)
    assert_equal 8, size, "nobody has served enough to be judged by"
    ripen
    pass(30)

    assert_equal (320 - 60) / 60, size
    assert_equal ["auto: 8 CPUs; 60.0 MiB a worker beside 60.0 MiB, 320.0 MiB may be used"], scaled
    assert_equal size, @cluster.roster.ready_workers.size
  end

  def test_who_was_killed_and_is_not_reaped_yet_is_none_of_the_others
    start(need: 60, memory: 400)
    ripen
    pass(30)
    @cluster.worker_in(0).kill("hard timeout")

    assert_match(/60.0 MiB a worker beside 60.0 MiB,/, @sizing.explain)
  end

  def test_the_limit_of_the_tree_counts_where_there_is_one
    start(need: 60, memory: 4000, total: 200)
    ripen
    pass(30)

    assert_equal (200 - 60) / 60, size
  end

  def test_one_is_kept_whatever_it_needs
    start(need: 600, memory: 400)
    ripen
    pass(30)

    assert_equal 1, size
  end

  def test_when_workers_need_less_there_are_more_one_at_a_time
    start(need: 60, memory: 400)
    ripen
    pass(30)
    few = size
    @source.worker = 20
    @cluster.generations.refork("test")
    @cluster.ready(@cluster.upcoming_mold)
    @cluster.settle
    ripen
    pass(70)
    assert_equal few + 1, size
    pass(400)

    assert_equal 8, size
  end

  # What it leaks later is no reason to do with fewer workers.
  def test_a_leak_is_none_of_its_business
    start(need: 20, memory: 400)
    ripen
    pass(20)
    @source.worker = 100
    pass(60)

    assert_equal 8, size
  end

  def test_a_reload_may_find_fewer_cpus
    start(need: 60, memory: 4000)
    pass(2)
    @cluster.options.workers = 4
    @cluster.rollout.follow_configuration
    refute_nil @sizing.due
    pass(2)

    assert_equal 4, size
    refute_equal "set by hand", @sizing.explain
  end

  # An old worker of many threads takes the lanes.
  def test_a_number_of_cpus_that_waits_for_lanes
    start(need: 60, memory: 4000)
    pass(2)
    old = @cluster.roster.workers.first
    old.threads = 64
    @cluster.options.workers = 16
    @cluster.rollout.follow_configuration
    pass(70)
    assert_equal 8, size
    old.threads = 1
    @cluster.turn
    pass(2)

    assert_equal 16, size
    refute_equal "set by hand", @sizing.explain
  end

  def test_who_scales_by_hand_has_the_last_word
    start(need: 60, memory: 400)
    pass(2)
    @cluster.rollout.resize(7)
    ripen
    pass(60)

    assert_equal 7, size
    assert_equal "set by hand", @sizing.explain
    assert_nil @sizing.due
  end

  def test_a_number_in_the_configuration_is_kept
    start(need: 60, memory: 400, auto: false)
    ripen
    pass(30)

    assert_equal 8, size
    assert_nil @sizing.explain
    assert_nil @sizing.due
  end

  def test_what_it_says_before_it_knows
    start

    assert_equal "one for each CPU", @sizing.explain
  end
end
