# frozen_string_literal: true

require "test_helper"
require "pando/cluster/canary/records"
require_relative "../support/simulation"

class ProofRecordsTest < Minitest::Test
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
  def seen(curve) = [curve.requests, curve.cpu.sum { |band| band.values.sum }]

  def test_what_was_prefaulted_is_no_measure_for_a_canary
    assert_equal [20, 10], seen(@records.before(1))
    @records.bury(@eased, false)
    @cluster.die(@eased)

    assert_equal [20, 10], seen(@records.before(1))
  end

  def test_it_is_looked_at_itself
    assert_equal [20, 20], seen(@records.of(0))
  end
end
