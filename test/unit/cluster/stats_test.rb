# frozen_string_literal: true

require "test_helper"
require "json"
require "pando"
require "pando/cluster/monitor"

class ClusterStatsTest < Minitest::Test
  include Pando

  Context = Struct.new(:scoreboard)
  Options = Struct.new(:jobs)
  Own = Struct.new(:context, :row, :options)

  def setup
    @board = Sys::Scoreboard.create(16)
    @seats = -1
  end

  def teardown = Pando.current_role = nil

  def test_the_shape_that_readers_of_puma_know
    process(:mold, state: :ready)
    process(:worker, slot: 0, threads: 5).start_job("GET", "/", nil, nil, 2)
    process(:worker, slot: 1, threads: 5)
    stats = stats_hash

    assert_equal(%i[started_at workers phase booted_workers old_workers worker_status versions], stats.keys)
    assert_equal([2, 7, 2, 0], stats.values_at(:workers, :phase, :booted_workers, :old_workers))
    one = stats[:worker_status].first
    assert_equal(%i[started_at pid index phase booted last_checkin last_status], one.keys)
    assert_equal([::Process.pid, 0, 7, true], one.values_at(:pid, :index, :phase, :booted))
    assert_equal({ backlog: 0, running: 5, busy_threads: 1, max_threads: 5, pool_capacity: 4, requests_count: 0 },
                 one[:last_status])
    assert_equal(5, stats[:worker_status].last[:last_status][:pool_capacity])
    [stats[:started_at], *one.values_at(:started_at, :last_checkin)].each do |time|
      assert_match(/\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\z/, time)
      assert_in_delta(::Time.now, ::Time.new(*time.scan(/\d+/).map(&:to_i), "UTC"), 5)
    end
  end

  def test_the_sum_of_all_shares_is_the_queue
    3.times { |slot| process(:worker, slot: slot) }
    process(:worker, slot: 3, state: :leaving)
    @board.tell_waiting(0, 8)

    assert_equal([3, 3, 2, 0], stats_hash[:worker_status].map { |one| one[:last_status][:backlog] })
  end

  def test_a_worker_that_starts_or_leaves_or_belongs_to_another_generation_takes_no_requests
    process(:worker, slot: 0, generation: 7, state: :leaving)
    process(:worker, slot: 0, generation: 8)
    process(:worker, slot: 1, generation: 8, state: :adopted)
    stats = stats_hash

    assert_equal([3, 8, 2, 1], stats.values_at(:workers, :phase, :booted_workers, :old_workers))
    assert_equal([true, true, false], stats[:worker_status].map { |one| one[:booted] })
    assert_equal([0, 1, 0], stats[:worker_status].map { |one| one[:last_status][:pool_capacity] })
  end

  def test_the_dead_those_to_come_and_other_pools_do_not_count
    process(:worker, state: :gone)
    process(:worker, state: :ordered)
    process(:worker, pool: 1)
    process(:service)
    @board.use(9) # no process has taken it yet

    assert_equal([0, 0, []], stats_hash.values_at(:workers, :phase, :worker_status))
    assert_equal(1, stats_hash(pool: 1)[:workers])
  end

  def test_nodes_tell_how_many_jobs_they_run
    process(:worker, threads: 1).count_jobs(3, 0)

    assert_equal([{ running: 0, busy_threads: 0, requests_count: 3 }],
                 stats_hash(jobs: true)[:worker_status].map { |one| one[:last_status] })
  end

  def test_from_inside_a_process
    assert_nil(Pando.stats_hash)
    assert_nil(Pando.stats)
    process(:worker, pool: 1)
    Pando.current_role = Own.new(Context.new(@board), process(:service, pool: 1), Options.new(nil))

    assert_equal(1, Pando.stats_hash[:workers])
    assert_equal(Pando.stats_hash, JSON.parse(Pando.stats, symbolize_names: true))
  end

  private

  def stats_hash(pool: 0, **how) = Cluster::Stats.new(@board, pool, **how).to_h

  def process(role, slot: 0, generation: 7, state: :ready, pool: 0, threads: 1)
    row = @board.use(@seats += 1)
    row.claim(Cluster::Roster::ROLES.index(role), slot, generation)
    row.tell(Sys::Row::STATES.index(state), pool, threads)
  end
end
