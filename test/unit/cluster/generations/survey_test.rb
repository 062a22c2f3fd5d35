# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require "support/upgrade_record"
require_relative "../support/simulation"

# What is known of the generation that serves.
class SurveyTest < Minitest::Test
  include ClusterSupport::Clock

  MIB = 1024**2
  Survey = Pando::Cluster::Generations::Survey
  Usage = Pando::Sys::Memory::Usage

  # Stands for /proc.
  class Processes
    attr_reader :usages, :faults, :measured

    def initialize
      @usages = Hash.new { |usages, pid| usages[pid] = Usage.new(10 * MIB, 4 * MIB, 20 * MIB) }
      @faults = Hash.new(0)
      @measured = []
    end

    def usage(pid) = usages[pid.tap { measured << pid }]

    # All have so much in common, and 4 MiB each.
    # @param only [Array<Child>, nil] those that have it; nil: all
    # @yield who they are at a time
    def share(bytes, only: nil)
      define_singleton_method(:usage) do |pid|
        measured << pid
        next usages[pid] unless only.nil? || only.any? { |child| child.pid == pid }

        Usage.new((bytes / yield.count) + (4 * MIB), 4 * MIB, bytes + (4 * MIB))
      end
    end

    def minor_faults(pid) = faults[pid]
    def anonymous(_pid) = nil
  end

  def setup
    super
    @cluster = ClusterSupport::Simulation.new
    @cluster.boot
    @processes = Processes.new
    @gauge = Pando::Cluster::Memory::Gauge.new(@processes, clock: -> { @measuring.to_f })
    @survey = survey
  end

  def survey = Survey.new(@cluster.roster, @cluster.generations, @gauge, ClusterSupport.options(mold: @mold || :keep))
  def footprint(time) = Survey::Footprint.new(@gauge, time)
  def workers = @cluster.roster.ready_workers

  def serve(worker, requests) = @cluster.serve(worker, requests)

  # Looks until there is no more haste.
  def look
    vitals = nil
    8.times do
      elapse(1)
      vitals = @survey.look(3) || vitals
    end
    vitals
  end

  def test_requests_of_a_worker_on_average
    workers.zip([10, 30]) { |worker, count| serve(worker, count) }

    assert_equal [20.0, 30, 0, 3, 2], look.to_h.values_at(:age, :most, :generation, :reforks, :workers)
  end

  def test_how_many_are_warm
    assert_in_delta 2.0, look.warmed
    serve(workers.first, 99)
    assert_in_delta 1.0, look.warmed
    serve(workers.last, 9)
    assert_in_delta 1.5, look.warmed
  end

  def test_it_looks_now_and_then
    assert @survey.look(0)
    assert_nil @survey.look(0)
    assert_operator @survey.due, :>, now
  end

  def test_nothing_while_a_worker_comes_or_goes
    @cluster.rollout.ask_to_leave(workers.first, "test")

    assert_nil look
  end

  def test_the_memory_of_all_once_each_is_measured
    elapse(1)

    assert_nil @survey.look(0).pss
    assert_equal 30 * MIB, look.pss
  end

  def test_page_faults_since_a_measurement_are_memory
    look
    pid = workers.first.pid
    before = @gauge.pss(pid)
    @processes.faults[pid] += 256 # pages: a mebibyte

    assert_equal before + MIB, @gauge.pss(pid)
  end

  def test_what_processes_have_for_themselves_is_known_with_their_page_faults
    look
    workers.each { |worker| @processes.faults[worker.pid] += 256 } # pages: a mebibyte
    serve(workers.first, 1)
    own = look.private
    pids = [*workers, @cluster.current_mold].map(&:pid)
    measured = pids.sum { |pid| @gauge.last(pid).private }

    assert_equal pids.sum { |pid| @gauge.most(pid) }, own
    assert_operator own, :>, measured
  end

  def test_of_a_mold_that_will_go_only_what_it_shares_counts
    old = @cluster.roster.admit(:mold, 0, 0, ClusterSupport::FakeLink.new, nil)
    old.adopt(ClusterSupport::FakePidfd.new(999_999))

    assert_equal 36 * MIB, look.pss
  end

  # It shares pages with those that stay, which is no growth of theirs when it has gone.
  def test_a_draining_worker_leaves_and_the_sum_stays
    @processes.share(60 * MIB) { @cluster.roster }
    drained = @cluster.drain(workers.first)
    before = look.pss
    assert_predicate drained, :draining?
    @cluster.die(drained, ClusterSupport.ended)

    assert_equal [72 * MIB] * 2, [before, look.pss]
  end

  # They share pages with each other, and none with those that have booted from cold.
  def test_what_draining_workers_of_a_former_release_share_does_not_count
    drained = workers.each { |worker| @cluster.drain(worker) }
    @cluster.generations.reload(["new"], [])
    @cluster.settle
    @processes.share(60 * MIB, only: drained) { @cluster.roster.select(&:draining?) }
    before = look.pss
    assert drained.all?(&:draining?)
    drained.each { |worker| @cluster.die(worker, ClusterSupport.ended) }

    assert_equal [30 * MIB] * 2, [before, look.pss]
  end

  def test_a_draining_worker_of_the_generation_before_a_refork_counts
    @processes.share(60 * MIB) { @cluster.roster }
    @cluster.drain(workers.first)
    @cluster.generations.refork("test")
    @cluster.settle

    assert_equal 72 * MIB, look.pss
  end

  # As in gVisor: more haste would find nothing either.
  def test_where_memory_cannot_be_measured_it_looks_now_and_then_and_says_why
    @processes.define_singleton_method(:usage) { |_pid| nil }
    @gauge.probe
    vitals = @survey.look(0)

    assert_nil vitals.pss
    assert_equal @gauge.obstacle, vitals.obstacle
    assert_in_delta Survey::TICK, @survey.due - now
  end

  def test_where_memory_can_be_measured_nothing_prevents_that
    @gauge.probe

    assert_nil look.obstacle
  end

  def test_who_comes_makes_all_be_measured_again
    look
    @processes.measured.clear
    @cluster.rollout.resize(3)
    @cluster.settle
    look

    assert_empty workers.map(&:pid) - @processes.measured
  end

  def test_measuring_takes_a_thousandth_of_a_cpu
    footprint = footprint(0.0)
    assert footprint.affordable?(0.0)
    footprint.spend(0.1)

    refute footprint.affordable?(49.0)
    assert footprint.affordable?(51.0)
    footprint.spend(0.0)
    footprint.affordable?(100_000.0)
    footprint.spend(0.11)
    refute footprint.affordable?(100_001.0)
  end

  def test_what_is_new_is_measured_though_nothing_is_left_and_not_again_then
    footprint = footprint(now)
    footprint.spend(0.5)
    10.times { footprint.measure(workers, []) }

    assert_equal workers.map(&:pid), @processes.measured.sort
    assert_predicate footprint.pss, :positive?
  end

  def test_who_owes_much_measures_nothing_and_does_not_hurry
    footprint = footprint(now)
    footprint.spend(1.2)
    footprint.measure(workers, [])

    assert_empty @processes.measured
    refute_predicate footprint, :incomplete?
  end

  def test_who_takes_the_place_of_a_dead_one_goes_on_where_he_was
    workers.each { |worker| serve(worker, 100) }
    look
    @cluster.die(workers.first)
    @cluster.settle
    workers.each { |worker| serve(worker, 10) }

    assert_in_delta 110.0, look.age
  end

  def test_fewer_workers_are_not_older
    workers.each { |worker| serve(worker, 100) }
    look
    @cluster.rollout.resize(1)
    @cluster.settle

    assert_in_delta 100.0, look.age
  end

  def test_more_workers_are_younger_on_average
    workers.each { |worker| serve(worker, 100) }
    look
    @cluster.rollout.resize(4)
    @cluster.settle

    assert_in_delta 50.0, look.age
  end

  def test_cpu_time_of_a_slot
    clock = Struct.new(:seconds) { def cpu_time(_pid) = seconds }.new(0.25)
    record = Survey::ServiceRecord.new(clock)
    record.share(0.5)
    record.add(workers)
    clock.seconds = nil # they have just died
    record.add(workers)

    assert_in_delta 0.5, record.cpu
    assert_in_delta 0.25, record.mold_cpu
  end

  # The server's container was frozen.
  def test_time_in_which_nothing_could_be_served_is_not_its_age
    before = look.seconds
    elapse(3600)
    @survey.stood_still(3600)

    assert_in_delta before + 8, look.seconds, 0.1
  end

  def test_the_server_may_stand_still_before_its_first_look
    @survey.stood_still(3600)

    assert_operator look.seconds, :<, 10
  end

  def test_it_comes_through_an_upgrade
    workers.each { |worker| serve(worker, 100) }
    before = look
    @survey = survey.take_up(Support::UpgradeRecord.of(@survey))
    after = look

    assert_equal before.age, after.age
    assert_operator after.seconds, :>, before.seconds
  end

  def test_a_mold_in_another_s_place_begins_no_generation
    workers.each { |worker| serve(worker, 100) }
    look
    heal

    assert_equal [100.0, 0], look.to_h.values_at(:age, :generation)
    assert_equal 1, @cluster.generations.current.number
  end

  # All its workers are new.
  def test_a_generation_that_is_gone_back_to_begins_anew
    heal
    canary = Pando::Cluster::Canary::Criteria.new(requests: 1, seconds: 0.0, longest: 1.0)
    @cluster.options.canary = canary
    look
    refork_and_watch
    workers.each { |worker| serve(worker, 100) }
    assert_equal 2, look.generation
    @cluster.generations.roll_back("test")
    elapse(60)
    @cluster.settle

    assert_equal [1, 1], @cluster.generations_of_workers
    assert_equal [0.0, 1], look.to_h.values_at(:age, :generation)
  end

  # A mold has died, and a worker has forked the next one.
  def heal
    @cluster.die(@cluster.current_mold)
    elapse(60)
    @cluster.settle
  end

  def refork_and_watch
    @cluster.generations.refork("test")
    @cluster.settle do
      elapse(2)
      workers.each { |worker| serve(worker, 1) }
      break if @cluster.generations.watching?
    end
  end

  def test_another_generation_begins_at_its_own_age
    workers.each { |worker| serve(worker, 100) }
    look
    @cluster.generations.refork("test")
    @cluster.settle

    assert_equal [0.0, 1], look.to_h.values_at(:age, :generation)
  end
end
