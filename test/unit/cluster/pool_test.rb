# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require "pando/refork"
require_relative "support/simulation"

# One pool with all its parts, and a mold that is no more than a process.
class PoolTest < Minitest::Test
  include ClusterSupport::Clock
  include ClusterSupport::Listening

  Cluster = Pando::Cluster
  TICK = Cluster::Generations::MoldReleaser::TICK

  # Stands for the monitor.
  Monitor = Struct.new(:roster, :shutdown, :reload, :drain, :gauge, :shortage, keyword_init: true) do
    def dismiss(child) = roster.dismiss(child)
    def poller = ClusterSupport::FakePoller.new
    def command = Pando::Cluster::ColdBootCommand.new(%w[sleep 60])
    def oom = ClusterSupport::Simulation::Oom.new([])
    def several_pools? = false
    def listeners = Cluster::Listening::Listeners.new
    def reactor_setup = nil
  end
  Shutdown = Struct.new(:begun?)
  Reload = Struct.new(:under_way?, :awaits_mold?, :failed?)
  Drain = Struct.new(:begun?)

  def setup
    super
    @roster = ClusterSupport.roster
    @drain = Drain.new(false)
    @pool = pool(ClusterSupport.options(mold: :release, longest_wait: 0))
    boot
  end

  def teardown
    @mold.signal("KILL")
    Process.wait(@mold.pid)
    super
  end

  # Every part that is due is asked; otherwise the monitor would not come to rest.
  def test_in_the_delay_of_a_stop_nothing_is_overdue
    @roster.each { |child| @pool.child_events.child_signalled(child, "TERM") }
    @drain[:begun?] = true
    4.times do
      elapse(TICK + 1)
      @pool.enforce
      @pool.reconcile(true)

      assert_operator(@pool.due, :>, now)
    end
  end

  # Until then all is served as ever.
  def test_in_the_delay_of_a_stop_a_mold_is_forked_if_it_is_wanted
    @pool.generations.release_mold("test")
    @drain[:begun?] = true
    @pool.child_events.child_lost(@roster.ready_workers.first, ClusterSupport.killed)
    2.times { @pool.reconcile(true) }

    assert_same(@roster.ready_workers.first, @pool.generations.upcoming&.source)
  end

  # Otherwise it would refork as after an idle night.
  def test_time_in_which_the_server_was_frozen_does_not_count_for_reforks
    seconds = []
    policy = Pando::Refork::Auto.new
    policy.define_singleton_method(:decide) do |vitals, conditions|
      seconds << vitals.seconds
      super(vitals, conditions)
    end
    @pool.generations.reforks.policy = policy
    @pool.reconcile(false)
    elapse(3600)
    @pool.postpone(3600)
    @pool.reconcile(false)

    assert_equal(2, seconds.size)
    assert_operator(seconds.last, :<, 1)
  end

  def test_after_an_upgrade_new_workers_refuse_what_the_others_do
    document = Cluster::Upgrade::Document.new
    @pool.to_state(document)
    document.add(Cluster::Poison::Ban::RECORD, verb: "GET", path: "/deadly", ends_at: now + 60)
    later = pool(ClusterSupport.options)
    later.from_state(Cluster::Upgrade::State.new(document.class.parse(document.to_s)))
    newcomer = @roster.admit(:worker, 7, 0, ClusterSupport::FakeLink.new, nil)
    later.reconcile(false)

    assert_equal(["GET /deadly"], later.poison.refused.map { |one| one[:request] })
    assert_includes(newcomer.link.orders, :refuse)
  end

  private

  def pool(options)
    payload = ClusterSupport::Simulation::Payload.new(options)
    payload.define_singleton_method(:name) { "web" }
    plan = Cluster::Pools::Plan.new(payload: payload, policy: ClusterSupport::Simulation::Policy.new(nil, true))
    gauge = Cluster::Memory::Gauge.new
    monitor = Monitor.new(roster: @roster, shutdown: Shutdown.new(false), reload: Reload.new(false, false),
                          drain: @drain, gauge: gauge, shortage: Cluster::Memory::Shortage.new(options, gauge))
    Cluster::Pool.new(monitor, plan, @roster, 0, nil)
  end

  def boot
    @pool.boot
    ready(@mold = @pool.generations.upcoming.mold)
    4.times do
      @pool.reconcile(false)
      @roster.select(&:starting?).each { |child| ready(child) }
    end
    assert_predicate(@pool.generations, :settled?)
  end

  def ready(child)
    child.adopt(ClusterSupport::FakePidfd.new(ClusterSupport::Simulation::Spawner.pid)) if child.ordered?
    child.become_ready
    @pool.child_events.child_ready(child)
  end
end
