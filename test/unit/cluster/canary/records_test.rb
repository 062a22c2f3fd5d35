# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "../support/simulation"

class CanaryRecordsTest < Minitest::Test
  def setup
    super
    @cluster = ClusterSupport::Simulation.new(workers: 2)
    @cluster.boot
    @records = Pando::Cluster::Canary::Records.new(@cluster.roster, ->(_worker) { false })
    @eased = @cluster.worker_in(0)
    @eased.row.prefault(4096, 0.001)
    2.times { |slot| @cluster.serve(@cluster.worker_in(slot), 10) }
  end

  # @return [Array(Integer, Integer)] requests, and those of them whose cost is known
  def seen(curve) = [curve.requests, curve[:cpu].sum { |band| band.values.sum }]

  def test_what_was_prefaulted_is_no_measure_for_a_canary
    assert_equal [20, 10], seen(@records.before(1))
    @records.add_dead(@eased, false)
    @cluster.die(@eased)

    assert_equal [20, 10], seen(@records.before(1))
  end

  def test_it_is_looked_at_itself
    assert_equal [20, 20], seen(@records.of(0))
  end
end

# A release that is booted fills caches and compiles what a forked worker inherits: it is measured by what was booted.
class CanaryColdRecordsTest < Minitest::Test
  # Stands for a row of the scoreboard: so many requests that each took so long.
  Row = Struct.new(:requests, :code, :given, :guessed) do
    def failures = 0
    def faults = [code]
    def prefaulted = [given.to_i, 0]
    def prefault_guessed? = guessed || false
    def first_jobs = [[code].pack("C") * requests] * 2
  end
  # Stands for Child.
  Worker = Struct.new(:generation, :row, :pidfd)
  Roster = Struct.new(:workers)
  COLD = 90
  WARM = 60

  def setup
    @roster = Roster.new([])
    @records = Pando::Cluster::Canary::Records.new(@roster, ->(_worker) { false })
    @records.merge_into(0)
    serve(0, COLD)
  end

  def test_a_reload_after_reforks
    established(1, WARM)
    established(2, WARM)
    @records.begun_cold(3)

    assert_equal [[COLD], [COLD], 20, COLD], told(3)
    assert_equal [[WARM], [WARM], 20, WARM], told(4), "a refork is measured by what serves"
  end

  def test_a_reload_after_a_reload
    @records.begun_cold(1)
    established(1, COLD + 1)
    established(2, WARM)
    @records.begun_cold(3)

    assert_equal [COLD + 1], told(3).first
  end

  def test_a_reload_after_one_that_was_rolled_back
    established(1, WARM)
    @records.begun_cold(2)
    established(2, COLD + 1)
    @records.forget(2)
    @roster.workers.clear
    serve(1, WARM)
    @records.begun_cold(3)

    assert_equal [COLD], told(3).first
  end

  def test_a_reload_after_a_mold_was_lost
    established(1, WARM)
    @records.merge_into(2)
    @records.begun_cold(3)

    assert_equal [COLD], told(3).first
  end

  # It is faster than a canary, whose pages can only be guessed, and counts a fault for each that it was given.
  def test_a_prefaulted_worker_is_no_measure
    established(1, WARM)
    established(2, WARM)
    @roster.workers << Worker.new(2, Row.new(10, COLD, 4096), 3)

    assert_equal [[WARM], [WARM], 30, WARM], told(3)
  end

  # As the canary that is measured by it.
  def test_a_worker_whose_pages_were_guessed_is_one
    established(1, WARM)
    established(2, WARM)
    @roster.workers << Worker.new(2, Row.new(10, COLD, Pando::Sys::Memory::PAGE, true), 3)

    assert_equal [[WARM, COLD], [WARM, COLD], 30, COLD - 1], told(3), "without the fault of the page that it was given"
  end

  # The monitor goes on as another program, which has not seen it.
  def test_what_began_cold_is_not_known
    records = Pando::Cluster::Canary::Records.new(@roster, ->(_worker) { false })
    records.begun_cold(1)

    assert_equal [[], 10], [records.before(1)[:cpu].flat_map(&:keys), records.before(1).requests]
  end

  private

  def serve(generation, code)
    @roster.workers << Worker.new(generation, Row.new(10, code), 3)
  end

  # The workers of the generation before end.
  def established(number, code)
    serve(number, code)
    @records.forget_before(number)
    gone = @roster.workers.reject { |worker| worker.generation == number }
    @roster.workers -= gone
    gone.each { |worker| @records.add_dead(worker, false) }
  end

  # @return [Array] what requests took before this generation, how many there were, and the page faults
  def told(number)
    curve = @records.before(number)
    [curve[:cpu], curve[:time]].map { |bands| bands.flat_map(&:keys).uniq } + [curve.requests, curve.faults.max]
  end
end
