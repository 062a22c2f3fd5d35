# frozen_string_literal: true

require "test_helper"
require "pando/cluster/memory_keeper"
require_relative "support/simulation"

# Who is too fat, and what is done about it.
class MemoryKeeperTest < Minitest::Test
  include ClusterSupport::Clock
  include ClusterSupport::Listening

  MIB = 1024**2
  Usage = Pando::Sys::Memory::Usage

  # Stands for /proc: what each process has; every page of it was a fault.
  class Source
    attr_reader :measured

    def initialize
      @sizes = {}
      @measured = []
    end

    def []=(pid, mebibytes)
      @sizes[pid] = mebibytes * MIB
    end

    def usage(pid)
      @measured << pid
      (size = @sizes[pid]) && Usage.new(size + (4 * MIB), size)
    end

    def minor_faults(pid) = @sizes[pid] && (@sizes[pid] / 4096)
  end

  def start(workers: 3, pressure: -> {}, **limits)
    @cluster = ClusterSupport::Simulation.new(workers: workers).tap(&:boot)
    @source = Source.new
    @cluster.roster.each { |child| @source[child.pid] = 20 }
    @source[Process.pid] = 10
    gauge = Pando::Cluster::MemoryGauge.new(@source)
    @keeper = Pando::Cluster::MemoryKeeper.new(
      @cluster.roster, options(**limits.transform_values { |size| size * MIB }),
      @cluster.rollout, @cluster.generations.method(:worker_wasted), gauge: gauge, pressure: pressure
    )
  end

  def options(**limits) = ClusterSupport.options(memory: Pando::Cluster::MemoryLimits.new(**limits))

  def look(times = 1)
    times.times do
      elapse(0.3)
      @keeper.reconcile
    end
  end

  def worker(slot) = @cluster.worker_in(slot)
  def leaving = @cluster.leaving.map(&:slot)

  def grow(slot, size)
    @cluster.serve(worker(slot))
    @source[worker(slot).pid] = size
  end

  def test_without_limits_nothing_is_measured
    start
    look(5)

    assert_empty(@source.measured)
    assert_nil(@keeper.due)
  end

  def test_who_passes_the_limit_is_replaced
    start(worker: 100)
    look
    grow(1, 101)
    look

    assert_equal([1], leaving)
    assert_equal("its 101.0 MiB of private memory are over the limit of 100.0 MiB",
                 events("worker.leaving").last[:reason])
    assert_empty(worker_signals)
    @cluster.settle

    assert_equal([0, 1, 2], @cluster.slots)
  end

  def test_who_cannot_have_passed_it_is_not_measured
    start(worker: 100)
    look(5)

    assert_empty(@source.measured)
    assert_empty(leaving)
  end

  def test_one_at_a_time
    start(worker: 100)
    3.times { |slot| grow(slot, 110 + slot) }
    look(3)
    assert_equal([2], leaving, "the fattest first")
    @cluster.settle(1)
    @source[worker(2).pid] = 20
    look

    assert_equal([1], leaving)
  end

  def test_beyond_the_hard_limit_it_is_killed_in_its_request
    start(worker: 100, hard: 200)
    worker(0).row.start_job("GET", "/export", nil, nil)
    @source[worker(0).pid] = 201
    victim = worker(0)
    look

    assert_equal(["KILL"], victim.pidfd.signals)
    assert_predicate(victim, :suspect?)
    killed = events("request.killed").last
    assert_equal(["GET /export", victim.pid], [killed[:request], killed[:pid]])
    assert_match(/201.0 MiB of private memory are over the hard limit of 200.0 MiB/, killed[:reason])
  end

  def test_who_is_leaving_is_killed_beyond_the_hard_limit_as_well
    start(worker: 100, hard: 200)
    worker(0).row.start_job("GET", "/export", nil, nil)
    @source[worker(0).pid] = 150
    victim = worker(0)
    look
    assert_predicate(victim, :leaving?)
    @source[victim.pid] = 250
    look

    assert_equal(["KILL"], victim.pidfd.signals)
  end

  def test_an_idle_one_beyond_the_hard_limit_just_leaves
    start(worker: 100, hard: 200)
    grow(0, 300)
    look

    assert_equal([0], leaving)
    assert_empty(worker_signals)
  end

  def test_where_there_is_but_a_hard_limit_an_idle_one_leaves_as_well
    start(hard: 200)
    grow(0, 201)
    look

    assert_equal([0], leaving)
    assert_empty(worker_signals)
  end

  def test_when_all_take_too_much_the_fattest_goes
    start(total: 150)
    grow(1, 90)
    look(8)

    assert_equal([1], leaving)
    assert_equal("all processes together take 180.0 MiB of 150.0 MiB, and of all workers it has most private memory " \
                 "(90.0 MiB)", events("worker.leaving").last[:reason])
    @cluster.settle(1)
    @source[worker(1).pid] = 20
    elapse(6)
    look(8)
    assert_empty(leaving, "the tree is small again")
  end

  def test_its_departure_is_given_time_to_show
    start(total: 100)
    look(8)
    assert_equal(1, leaving.size)
    @cluster.settle(1)
    look(2)

    assert_empty(leaving)
  end

  def test_under_pressure_the_fattest_goes
    start(pressure: -> { @waiting }, workers: 2)
    @keeper = Pando::Cluster::MemoryKeeper.new(
      @cluster.roster, options(pressure: 20), @cluster.rollout, ->(_) {},
      gauge: Pando::Cluster::MemoryGauge.new(@source), pressure: -> { @waiting }
    )
    grow(1, 50)
    [nil, 19.5].each do |waiting|
      @waiting = waiting
      look(6)
      assert_empty(leaving)
    end
    @waiting = 20.5
    look

    assert_equal([1], leaving)
  end

  def test_who_was_born_too_fat_is_not_replaced_for_ever
    start(worker: 15, workers: 1)
    look
    assert_equal([0], leaving)
    assert_predicate(@cluster.generations.current.backoff.failures, :positive?)
  end

  def test_who_vanishes_meanwhile
    start(worker: 10, total: 100)
    @cluster.roster.each { |child| @source[child.pid] = 0 }
    @source.singleton_class.define_method(:usage) { |_pid| nil }
    look(10)

    assert_empty(leaving)
  end

  private

  def worker_signals = @cluster.roster.workers.flat_map { |child| child.pidfd.signals }
end
