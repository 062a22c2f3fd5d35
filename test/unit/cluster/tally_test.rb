# frozen_string_literal: true

require "test_helper"
require "pando/cluster"
require "pando/cluster/tally"

# What has gone wrong since the start.
class ClusterTallyTest < Minitest::Test
  def setup = @tally = Pando::Cluster::Tally.new
  def teardown = @tally.close

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
    successor = Pando::Cluster::Tally.new
    successor.restore(@tally.counts)
    assert_equal @tally.counts, successor.counts
  ensure
    successor&.close
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
    successor = Pando::Cluster::Tally.new
    successor.restore(@tally.counts)
    Pando::LineWriter.lost += 1

    assert_equal({ "lines.lost" => 10 }, successor.counts)
  ensure
    successor&.close
  end

  def test_a_successor_counts_on
    @tally.restore("worker.lost" => 3, "oom.killed" => 1, "of.another" => 5)
    Pando::Events.emit("worker.lost")

    assert_equal({ "worker.lost" => 4, "oom.killed" => 1 }, @tally.counts)
  end
end
