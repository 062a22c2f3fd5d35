# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "support/traffic"

# What a trial knows of its canary, beside its requests.
class CanaryTrialTest < Minitest::Test
  include CanarySupport

  TERMS = Pando::Cluster::Canary::Criteria.new(requests: 20, seconds: 0, longest: 30)
  # Stands for Records.
  Book = Struct.new(:new_ones, :old_ones, :beside) do
    def of(_number) = new_ones
    def before(_number) = old_ones
    def since(_marks) = beside
    def marks(_number) = {}
  end
  Worker = Struct.new(:generation, :requests) do
    def row = Struct.new(:busy_since).new(nil)
    def order(_message) = true
    def engaged? = false
    def still? = false
  end

  def test_a_canary_that_is_slow
    assert_match(/times the time/, look(0.0))
  end

  def test_a_canary_that_waited_for_a_cpu
    assert_equal(:passed, look(20_000.0))
  end

  private

  # The canary's requests take ten milliseconds more, and no more CPU time.
  def look(waited)
    traffic = Traffic.new(1, [[1.0, 2_000, 1.1]])
    jobs = [traffic.codes(20), traffic.codes(20, 6.0)].map { |codes| codes.pack("C*") }
    slow = Curve.new.add(Row.new(20, 0, jobs, []))
    book = Book.new(slow, traffic.workers(2, 256), traffic.curve(40, one_band: true))
    canary = Worker.new(1, 20)
    roster = Struct.new(:ready_workers) { alias_method :workers, :ready_workers }.new([Worker.new(0, 300), canary])
    cpu_wait = Object.new
    cpu_wait.define_singleton_method(:per_request) { |workers| workers == [canary] ? waited : raise("of whom?") }
    memory = Object.new
    memory.define_singleton_method(:complaint) { |*| nil }

    Pando::Cluster::Canary::Trial.new(1, TERMS, roster, book, memory: memory, cpu_wait: cpu_wait, now: 0.0).look(1.0)
  end
end

# How long workers on trial wait for a CPU.
class CanaryCPUWaitTest < Minitest::Test
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
