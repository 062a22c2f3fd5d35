# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "support/simulation"

# All nodes are told to take nothing new, those too that are born later.
class ClusterQuietTest < Minitest::Test
  include ClusterSupport::Clock
  include ClusterSupport::Listening

  # Stands for Cluster::Pools.
  class Pools < Array
    def about(_pool) = yield
  end

  def setup
    super
    @cluster = start(jobs: true)
    @quiet = quiet(@cluster)
  end

  def start(**options) = ClusterSupport::Simulation.new(workers: 2, **options).tap(&:boot)

  def quiet(*clusters) = Pando::Cluster::Quiet.new(Pools.new(clusters))

  def orders(worker) = worker.link.orders.count(:quiet)

  def test_nobody_is_told_until_somebody_says_so
    @quiet.reconcile(false)

    assert_equal(0, @cluster.roster.ready_workers.sum { |worker| orders(worker) })
  end

  def test_everybody_is_told_once
    2.times { @quiet.begin("TSTP") }
    2.times { @quiet.reconcile(false) }

    assert_equal([1, 1], @cluster.roster.ready_workers.map { |worker| orders(worker) })
    assert_equal(1, events("nodes.quiet").size)
  end

  def test_who_takes_the_place_of_another_is_told_too
    @quiet.begin("TSTP")
    @quiet.reconcile(false)
    @cluster.die(@cluster.worker_in(0))
    @cluster.settle
    @quiet.reconcile(false)

    assert_equal 1, orders(@cluster.worker_in(0))
  end

  def test_it_hears_it_before_it_takes_a_job
    @quiet.begin("TSTP")
    @cluster.die(@cluster.worker_in(0))
    @cluster.turn
    newcomer, = @cluster.starting
    @quiet.reconcile(false)

    assert_equal 1, orders(newcomer)
    @quiet.undo("somebody")
    @cluster.settle
    assert_equal([0, 0], @cluster.roster.ready_workers.map { |worker| orders(worker) })
  end

  def test_who_serves_requests_is_not_concerned
    web = start
    quiet = quiet(web, @cluster)
    quiet.begin("TSTP")
    quiet.reconcile(false)

    assert_equal([[0, 0], [1, 1]], [web, @cluster].map { |one| one.roster.ready_workers.map { |child| orders(child) } })
    refute_predicate(quiet(web), :concerns_anybody?)
  end

  # What is asked by load balancers first does not keep nodes from ending their work.
  def test_a_server_that_is_about_to_stop_takes_no_jobs
    quiet(web = start).reconcile(true)
    @quiet.reconcile(true)

    assert_equal([1, 1], @cluster.roster.ready_workers.map { |worker| orders(worker) })
    assert_equal([0, 0], web.roster.ready_workers.map { |worker| orders(worker) })
    assert_equal(["the server stops"], events("nodes.quiet").map { |event| event[:reason] })
  end

  def test_who_was_quiet_is_replaced_when_jobs_are_to_be_done_again
    @quiet.undo("somebody")
    assert_empty(events("nodes.resumed"))
    @quiet.begin("TSTP")
    @quiet.reconcile(false)
    before = @cluster.roster.ready_workers.map(&:pid)
    @quiet.undo("somebody")
    @cluster.settle
    @quiet.reconcile(false)

    assert_empty(before & @cluster.roster.ready_workers.map(&:pid))
    assert_equal([0, 0], @cluster.roster.ready_workers.map { |worker| orders(worker) })
  end
end
