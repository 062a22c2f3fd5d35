# frozen_string_literal: true

require "test_helper"
require_relative "../support/memory_guard_case"

# Which workers take too much memory, and what is done about it.
class MemoryGuardTest < Minitest::Test
  include ClusterSupport::MemoryGuardCase

  def test_without_limits_nothing_is_measured
    start
    look(5)

    assert_empty(@source.measured)
    assert_nil(@guard.due)
  end

  def test_who_passes_the_limit_is_replaced
    start(worker: 100)
    look
    grow(1, 101)
    look

    assert_equal([1], leaving)
    assert_equal("its private memory is 101.0 MiB, over the limit of 100.0 MiB",
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
    assert_match(/\Aits private memory is 201.0 MiB, over the hard limit of 200.0 MiB/, killed[:reason])
  end

  # Until it is dead another one may get the interpreter lock.
  def test_of_several_requests_the_one_that_is_named_pays
    start(worker: 100, hard: 200)
    victim = worker(0)
    %w[/a /b].each.with_index { |path, job| victim.row.start_job("GET", path, nil, nil, job) }
    with_lock = 1
    victim.row.define_singleton_method(:job_with_lock) { with_lock }
    @source[victim.pid] = 201
    look
    with_lock = 0
    @cluster.die(victim)

    assert_equal(["GET /b"] * 2, %w[request.killed worker.killed].map { |name| events(name).last[:request] })
    assert_equal([false, true], [0, 1].map { |job| victim.blames?(job) })
  end

  # It may take a while to die, and had most of the memory.
  def test_who_was_killed_takes_no_part_in_the_total_though_it_is_not_reaped_yet
    start(worker: 100, hard: 200, total: 290)
    look(6)
    grow(0, 201)
    worker(0).row.start_job("GET", "/export", nil, nil)
    victim = worker(0)
    look(8)

    assert_equal(["KILL"], victim.pidfd.signals)
    assert_empty(events("memory.short"))
    assert_empty(leaving - [0])
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
    assert_match(/\Aall processes together take 1\d\d.0 MiB of 150.0 MiB, and of all workers it has most private mem/,
                 events("worker.leaving").last[:reason])
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
    start(workers: 2)
    keep(options(pressure: 20), -> { @waiting })
    grow(1, 50)
    [nil, 19.5].each do |waiting|
      @waiting = waiting
      look(6)
      assert_empty(leaving)
    end
    @waiting = 20.5
    look(8)

    assert_equal([1], leaving)
  end

  def test_when_the_control_group_is_nearly_full_the_fattest_goes
    start(workers: 2)
    memory = Pando::Sys::ControlGroup::Memory.new(89 * MIB, 100 * MIB)
    keep(options(group: 90), -> {}, Struct.new(:memory).new(memory))
    grow(0, 50)
    look(8)
    assert_empty(leaving)
    assert_empty(@source.measured)
    memory.used = 91 * MIB
    look(8)

    assert_equal([0], leaving)
    assert_match(/\A91.0 MiB of the 100.0 MiB of the control group are in use, and of all workers it has most/,
                 events("worker.leaving").last[:reason])
    assert_equal(:memory, events("worker.leaving").last[:cause])
    memory.used = 50 * MIB
    look
    assert_equal(%w[memory.short memory.recovered], event_names.grep(/memory/))
  end

  # Then neither the last one's departure nor its effect is waited for.
  def test_when_the_control_group_is_all_but_full_one_goes_at_each_look
    start(workers: 4)
    keep(options(group: 90), -> {}, Struct.new(:memory).new(Pando::Sys::ControlGroup::Memory.new(96 * MIB, 100 * MIB)))
    4.times { |slot| grow(slot, 50 + slot) }
    assert_equal([[3], [3, 2], [3, 2, 1]], Array.new(3) { look && leaving.sort.reverse })
    look(3)

    assert_equal([0], @cluster.slots, "the last one stays")
  end

  def test_what_does_not_help_is_done_less_and_less_often
    start(workers: 4, total: 10)
    departures = []
    400.times do
      look
      departures << now if leaving.any?
      @cluster.settle(1)
      @cluster.roster.each { |child| @source[child.pid] ||= 20 }
    end
    pauses = departures.each_cons(2).map { |first, second| second - first }

    assert_operator(pauses.size, :>=, 3)
    pauses.each_cons(2) { |shorter, longer| assert_operator(longer, :>, shorter * 1.5, pauses.inspect) }
  end

  def test_the_last_one_serves_until_another_one_does
    start(worker: 100, workers: 1)
    grow(0, 101)
    fat = worker(0)
    look(3)
    assert_predicate(fat, :ready?)
    assert_empty(leaving)
    @cluster.turn
    assert_equal(1, @cluster.starting.size)
    @cluster.settle(1)

    refute_equal(fat, worker(0))
    assert_predicate(fat, :gone?)
    assert_match(/over the limit of 100.0 MiB/, events("worker.leaving").last[:reason])
  end

  def test_without_a_mold_one_goes_and_the_others_stay
    start(worker: 100, workers: 3)
    @cluster.spawner.refusing = true
    3.times { |slot| grow(slot, 110 + slot) }
    60.times do
      look
      @cluster.settle(1)
    end

    assert_equal([0, 1], @cluster.slots)
  end

  def test_who_was_born_too_fat_is_not_replaced_for_ever
    start(worker: 15, workers: 2)
    look
    assert_equal(1, leaving.size)
    assert_predicate(@cluster.generations.current.backoff.failures, :positive?)
  end

  def test_where_there_are_several_pools_the_keeper_of_the_fattest_relieves
    start(total: 200)
    stranger = stranger(200)
    keep(@options, -> {}, roster: @cluster.roster.of(0))
    look(20)

    assert_equal(1, events("memory.short").size, "all are counted")
    assert_empty(leaving, "but it is not ours")
    @source[stranger.pid] = 30
    grow(0, 140)
    look(20)
    assert_equal([0], leaving)
  end

  # Two guards, and one departure.
  def test_of_several_pools_one_worker_goes_at_a_time
    start(workers: 2, total: 100)
    gauge = Pando::Cluster::Memory::Gauge.new(@source, clock: -> { 0.0 })
    shortage = Pando::Cluster::Memory::Shortage.new(@options, gauge, pressure: -> {}, group: nil)
    guards = Array.new(2) { |pool| guard(@cluster.roster.of(pool), gauge, shortage) }
    fattest = stranger(200)
    grow(0, 140)
    looks = ->(times) { times.times { elapse(0.3) && guards.each(&:reconcile) } }
    looks.call(5)
    assert_equal([fattest], @cluster.leaving)
    @source[fattest.pid] = 0
    @cluster.roster.dismiss(fattest)
    looks.call(1)
    assert_empty(leaving, "its effect is waited for")
    looks.call(10)

    assert_equal([0], leaving)
  end

  # Page faults since its birth tell nothing of the size that it has: 0 has had most.
  def test_where_private_memory_cannot_be_measured_anonymous_memory_decides
    start_unmeasurable
    3.times { |slot| @source.anonymous_sizes[worker(slot).pid] = slot == 1 ? 50 * MIB : 30 * MIB }
    look

    assert_equal([1], leaving)
    assert_equal("91.0 MiB of the 100.0 MiB of the control group are in use, and of all workers it has most " \
                 "anonymous memory", events("worker.leaving").last[:reason])
  end

  def test_where_no_memory_can_be_measured_no_worker_is_replaced
    start_unmeasurable
    look(5)

    assert_empty(leaving)
  end

  def start_unmeasurable
    start(workers: 3)
    @source.singleton_class.define_method(:usage) { |_pid| nil }
    keep(options(group: 90), -> {}, Struct.new(:memory).new(Pando::Sys::ControlGroup::Memory.new(91 * MIB, 100 * MIB)))
    @gauge.probe
    grow(0, 90)
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
