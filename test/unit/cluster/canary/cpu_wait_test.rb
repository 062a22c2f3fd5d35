# frozen_string_literal: true

require "test_helper"
require "pando/cluster/canary/cpu_wait"

class ClusterProofCPUWaitTest < Minitest::Test
  Worker = Struct.new(:pid, :requests)

  def setup
    @delays = {}
    source = Object.new
    source.define_singleton_method(:run_delay) { |pid| delays[pid] }
    delays = @delays
    source.define_singleton_method(:delays) { delays }
    @cpu_wait = Pando::Cluster::Canary::CPUWait.new(source)
  end

  def test_only_what_was_waited_since_it_is_looked_at
    worker = Worker.new(1, 0)
    @delays[1] = 5_000

    assert_equal(0.0, @cpu_wait.per_request([worker]))
    @delays[1] = 35_000
    worker.requests = 10
    assert_equal(3_000.0, @cpu_wait.per_request([worker]))
  end

  def test_all_of_them_together
    workers = [Worker.new(1, 10), Worker.new(2, 30)]
    @delays.update(1 => 0, 2 => 0)
    @cpu_wait.per_request(workers)
    @delays.update(1 => 1_000, 2 => 3_000)

    assert_equal(100.0, @cpu_wait.per_request(workers))
  end

  def test_without_an_account
    assert_equal(0.0, @cpu_wait.per_request([Worker.new(1, 10)]))
    assert_equal(0.0, @cpu_wait.per_request([]))
  end
end
