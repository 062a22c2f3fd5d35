# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"

# What has gone wrong since the start.
class ClusterTallyTest < Minitest::Test
  def setup = @tally = Pando::Cluster::Tally.new
  def teardown = [@tally, @successor].compact.each(&:close)

  # After an upgrade of the monitor.
  def successor
    state = Pando::Cluster::Upgrade::State.new
    @tally.to_state(state)
    taken_up(state)
  end

  def taken_up(state)
    read = Pando::Cluster::Upgrade::State.new(Pando::Cluster::Upgrade::Document.parse(state.to_s))
    yield read if block_given?
    @successor = Pando::Cluster::Tally.new
    @successor.from_state(read)
    @successor
  end

  def test_it_counts_what_goes_wrong_and_nothing_else
    2.times { Pando::Events.emit("worker.lost", reason: "signal KILL") }
    Pando::Events.emit("worker.ready")

    assert_equal({ "worker.lost" => 2 }, @tally.counts)
  end

  def test_of_requests_each_counts
    Pando::Events.emit("requests.lost", count: 3, reason: "reset (3)")
    Pando::Events.emit("requests.lost", count: 1, reason: "answered with 502 (1)")
    Pando::Events.emit("requests.shed", count: 40, reason: "max_queue (40)")
    Pando::Events.emit("request.poison", count: 3, request: "GET /")

    assert_equal({ "requests.lost" => 4, "requests.shed" => 40, "request.poison" => 1 }, @tally.counts)
    assert_equal @tally.counts, successor.counts
  end

  def test_victims_of_the_oom_killer_are_told_apart
    Pando::Events.emit("worker.lost", reason: "signal KILL")
    Pando::Events.emit("worker.lost", reason: "signal KILL", cause: :oom)
    Pando::Events.emit("worker.leaving", reason: "too fat", cause: :memory)
    Pando::Events.emit("worker.leaving", reason: "replaced")

    assert_equal({ "worker.lost" => 2, "oom.killed" => 1, "worker.outgrown" => 1 }, @tally.counts)
  end

  def test_lines_that_the_logs_of_all_processes_have_lost
    Pando::LineWriter.lost += 2
    @tally.add_lost_lines(3)
    @tally.add_lost_lines(4)

    assert_equal({ "lines.lost" => 9 }, @tally.counts)
    after = successor
    Pando::LineWriter.lost += 1

    assert_equal({ "lines.lost" => 10 }, after.counts)
  end

  def test_for_metrics_every_event_counts_by_pool_and_cause
    Pando::Events.emit("worker.ready", pool: "web")
    Pando::Events.emit("worker.killed", reason: "replaced: hard timeout: signal KILL", cause: :timeout)
    Pando::Events.emit("worker.killed", reason: "it stood still for 9 s: signal KILL", cause: :standstill)
    Pando::Events.emit("worker.exited", reason: "its private memory is 2 GiB")
    Pando::Events.emit("worker.exited", reason: "something new")
    Pando::Events.emit("requests.shed", count: 7, reason: "max_queue (7)")

    assert_equal({ ["worker.ready", "web", nil] => 1, ["worker.killed", nil, "timeout"] => 1,
                   ["worker.killed", nil, "standstill"] => 1, ["worker.exited", nil, "memory"] => 1,
                   ["worker.exited", nil, "other"] => 1, ["requests.shed", nil, nil] => 7 }, @tally.totals)
  end

  def test_the_cause_of_a_kill
    reasons = ["hard timeout", "it stood still for 9 s", "its private memory is 2 GiB", "something new"]

    assert_equal(%i[timeout standstill memory other],
                 reasons.map { |reason| Pando::Cluster::Tally.cause_of(reason) })
  end

  def test_requests_that_were_killed_are_told_apart_by_their_cause
    Pando::Events.emit("request.killed", reason: "hard timeout")
    Pando::Events.emit("request.killed", reason: "its private memory is 2 GiB, over the hard limit of 1 GiB")

    assert_equal({ ["request.killed", nil, "timeout"] => 1, ["request.killed", nil, "memory"] => 1 }, @tally.totals)
  end

  def test_a_discarded_generation_counts_by_what_failed
    Pando::Events.emit("canary.failed", generation: 3)
    Pando::Events.emit("generation.discarded", generation: 3, reason: "slow")
    Pando::Events.emit("generation.discarded", generation: 4, reason: "unknown")

    assert_equal([["generation.discarded", nil, "canary"], ["generation.discarded", nil, "other"]],
                 @tally.totals.keys.last(2))
  end

  def test_totals_and_work_survive_an_upgrade
    Pando::Events.emit("refork.finished", pool: "web")
    @tally.retire(worker(requests: 5, cpu: 1.5, timeouts: 2))
    after = successor
    Pando::Events.emit("refork.finished", pool: "web")

    live = worker(requests: 2, cpu: 0.5, timeouts: 1)
    assert_equal(2, after.totals[["refork.finished", "web", nil]])
    assert_equal([7, 3, 2.0, 0.25, 0.5],
                 after.work(0, { live => live.sample }).values_at(:requests, :timeouts, :cpu, :gc_time, :lock_wait))
  end

  def test_an_upgrade_may_add_a_pool_before_another
    state = Pando::Cluster::Upgrade::State.new
    %w[web sidekiq].each { |name| state.add("pool", name: name) }
    @tally.retire(worker(pool: 1, requests: 5, cpu: 1.5))
    @tally.to_state(state)
    after = taken_up(state) { |read| read.meet(%w[web mailer sidekiq]) }

    assert_equal([0, 0, 5], Array.new(3) { |pool| after.work(pool, {})[:requests] })
  end

  # A worker counts a failed request before its failure, and both may be read at different moments.
  def test_what_did_not_fail_never_falls
    counts = [[10, 10], [11, 10], [11, 11], [12, 12], [13, 12], [13, 14], [15, 14]].map do |requests, failures|
      @tally.work(0, { (one = worker(requests: requests, failures: failures)) => one.sample })
            .then { |sums| [sums[:requests] - sums[:failures], sums[:failures]] }
    end

    assert_equal([0, 1, 1, 1, 1, 1, 1], counts.map(&:first))
    assert_equal([10, 10, 10, 11, 12, 12, 14], counts.map(&:last))
    assert_equal(13, @tally.work(1, { (one = worker(requests: 13)) => one.sample })[:requests], "of another pool")
  end

  # It restores them from these records alone.
  def test_an_older_pando_finds_the_counts
    2.times { Pando::Events.emit("worker.lost", cause: :oom) }
    @tally.add_lost_lines(3)
    document = Pando::Cluster::Upgrade::State.new
    @tally.to_state(document)

    counts = document.all("count").to_h { |record| [record.text(:of), record.integer(:number)] }
    assert_equal({ "worker.lost" => 2, "oom.killed" => 2, "lines.lost" => 3 }, counts)
    assert_equal(@tally.counts, successor.counts)
  end

  Sample = Struct.new(:cpu, :faults, :minor_gcs, :major_gcs, :gc_time)
  Row = Struct.new(:failures, :timeouts, :lock_waited)
  Worker = Struct.new(:pool, :requests, :row, :sample) do
    def worker? = true
    def pidfd = true
  end

  def worker(requests:, cpu: 0.5, timeouts: 0, failures: 0, pool: 0)
    Worker.new(pool, requests, Row.new(failures, timeouts, 0.25), Sample.new(cpu, 10, 2, 1, 0.125))
  end

  def test_a_successor_counts_on
    2.times { Pando::Events.emit("worker.lost") }
    Pando::Events.emit("worker.lost", cause: :oom)
    5.times { Pando::Events.emit("of.another") }
    after = successor
    Pando::Events.emit("worker.lost")

    assert_equal({ "worker.lost" => 4, "oom.killed" => 1 }, after.counts)
  end
end
