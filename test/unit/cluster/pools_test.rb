# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "support/generations_case"

# What pools are to each other.
class PoolsUnitTest < Minitest::Test
  include ClusterSupport::Clock
  include ClusterSupport::Listening

  Pools = Pando::Cluster::Pools
  Generation = Pando::Cluster::Generation

  # Stands for a pool: the test says how it is.
  class FakePool
    attr_reader :name, :number, :roster, :generations, :boots
    attr_accessor :waits, :child_events, :due

    # As much of Generations as is asked.
    Generations = Struct.new(:current, :upcoming, :watched, :withdrawn, :occupation, :remaining) do
      attr_accessor :proven
      alias_method :proven?, :proven

      def end_watch(_reason) = self.watched = false
      def watching? = !!watched
      def reload(_command, listeners) = self.upcoming = FakePool.generation(1, listeners)
      def withdraw(generation, reason) = self.withdrawn = [generation, reason]
    end

    def self.generation(number, listeners = [])
      Generation.new(number, :reload, nil).tap { |one| one.define_singleton_method(:listeners) { listeners } }
    end

    def initialize(plan, roster, number)
      @name = plan.name
      @roster = roster
      @number = number
      @generations = Generations.new
      @child_events = ClusterSupport::Recorder.new
    end

    def reconcile(_ending) = nil
    def serves? = number.zero?
    def waits? = !!waits
    def boot = @boots = @boots.to_i + 1
    def serving? = roster.ready_workers.any?
  end

  Plan = Struct.new(:name)
  # Stands for the options and the rollout of a pool.
  Kind = Class.new do
    attr_accessor :jobs
    attr_reader :size

    def initialize(jobs, size)
      @jobs = jobs
      @size = size
    end
  end

  def setup
    super
    @roster = ClusterSupport.roster
    @shutdown = ClusterSupport::Recorder.new
    @pools = pools("web", "jobs")
    @web, @jobs = @pools.to_a
  end

  def test_each_sees_its_own_children
    web = worker(@web, slot: 1)
    jobs = worker(@jobs, slot: 1)

    assert_equal([[web], [jobs]], @pools.map { |pool| pool.roster.in_slot(1) })
    assert_equal([web, jobs], @roster.workers)
    assert_same(@jobs, @pools.of(jobs))
    assert_nil(@web.roster[jobs.seat])
    assert_same(@roster, @web.roster.everybody)
    @jobs.roster.dismiss(jobs)
    assert_equal([0, 1, 1], [@jobs.roster.size, @web.roster.size, @roster.size])
  end

  def test_the_only_one_has_the_whole_roster
    only = pools("workers").first

    assert_same(@roster, only.roster)
    Pando::Events.emit("thing.happened")
    assert_nil(events("thing.happened").first[:pool])
  end

  def test_workers_and_nodes_are_counted_apart
    plans = [Kind.new(false, 3), Kind.new(true, 1)]
    [@web, @jobs].zip(plans) do |pool, plan|
      %i[options rollout].each { |part| pool.define_singleton_method(part) { plan } }
    end

    assert_equal({ workers: 3, nodes: 1 }, @pools.sizes)
    plans.last.jobs = false

    assert_equal({ workers: 4 }, @pools.sizes)
  end

  def test_news_of_a_child_go_to_its_own_caretaker_and_name_its_pool
    @jobs.child_events.define_singleton_method(:child_ready) { |*| Pando::Events.emit("thing.happened", slot: 0) }
    @pools.tell(worker(@jobs), :child_ready)
    @pools.tell(child = worker(@web), :fork_failed, "no", innocent: true)

    assert_equal({ pool: "jobs", slot: 0 }, events("thing.happened").first.payload)
    assert_equal([[:fork_failed, child, "no", { innocent: true }]], @web.child_events.calls)
    Pando::Events.emit("thing.happened")
    assert_empty(events("thing.happened").last.payload)
  end

  # It is a child of the first one, and serves all.
  def test_events_of_the_reactor_name_no_pool
    reactor = @roster.admit(:reactor, 0, 0, ClusterSupport::FakeLink.new, nil)
    reactor.adopt(ClusterSupport::FakePidfd.new(7))
    @web.child_events.define_singleton_method(:child_lost) do |child, ending|
      Pando::Cluster::ExitReport.new(child, ending).tell
    end
    @pools.tell(reactor, :child_lost, ClusterSupport.killed)

    assert_equal([7, nil], events("reactor.failed").first.payload.values_at(:pid, :pool))
  end

  def test_a_reader_that_a_worker_gave_up_counts_for_its_pool
    child = tell_for_real(:reader_lost, "192.0.2.1, 5 bytes/s\nGET /a b")

    fields = { pool: "jobs", count: 1, reason: "write_timeout (1)", slowest: "192.0.2.1, 5 bytes/s",
               request: "GET /a b" }
    assert_equal([{ **child.identity, **fields }], events("requests.lost").map(&:payload))
  end

  def test_lost_lines_and_a_damaged_lane_are_told_to_the_childs_own_pool
    told = %i[tally reactors].to_h { |part| [part, ClusterSupport::Recorder.new] }
    told.each { |name, part| @jobs.define_singleton_method(name) { part } }
    tell_for_real(:lines_lost, 12)
    tell_for_real(:lane_corrupt, 3)

    assert_equal({ tally: [[:add_lost_lines, 12]], reactors: [[:lane_corrupt, 3]] }, told.transform_values(&:calls))
  end

  def test_at_a_start_each_must_come_up
    worker(@web)

    assert(@pools.give_up(@jobs, "no gem", "line 1"))
    assert_equal([[:fail, "jobs: no gem", "line 1"]], @shutdown.calls)
  end

  def test_later_the_others_serve_on
    start
    worker(@web)

    refute(@pools.give_up(@jobs, "no gem", nil))
    assert_empty(@shutdown.calls)
    assert_equal("no gem", events("pool.failing").first[:reason])
    refute(@pools.give_up(@jobs, "no gem", nil))
    assert_equal(1, events("pool.failing").size, "it is told once")
    @roster.to_a.each { |child| @roster.dismiss(child) }
    assert(@pools.give_up(@jobs, "no gem", nil))
  end

  def serve_no_more(give_up_after)
    options = ClusterSupport.options(give_up_after: give_up_after)
    @pools.each { |pool| pool.generations.proven = true }
    @web.define_singleton_method(:options) { options }
    serving = worker(@web)
    @pools.reconcile(false)
    @roster.dismiss(serving)
  end

  def test_once_it_has_served_time_alone_ends_it
    serve_no_more(60.0)
    100.times { refute(@pools.give_up(@jobs, "no fork", nil)) }
    assert_equal([{ reason: "jobs: no fork", seconds: 60.0 }], events("server.failing").map(&:payload))
    elapse(60)

    assert(@pools.give_up(@jobs, "no fork", nil))
    assert_equal([[:fail, "no worker has been ready for 60 s (give_up after: 60): jobs: no fork", nil]],
                 @shutdown.calls)
  end

  def test_unless_the_user_has_said_when_never
    serve_no_more(nil)
    elapse(1_000_000)

    refute(@pools.give_up(@jobs, "no fork", nil))
    assert_equal([{ reason: "jobs: no fork" }], events("server.failing").map(&:payload))
  end

  def test_no_new_release_serves_before_all_have_booted
    release = reload
    web, jobs = upcoming
    web.enter(:ready)
    proceed

    assert_equal(%i[ready booting], states)
    jobs.enter(:ready)
    proceed
    assert_equal(%i[ready canary], states, "the clients' pool waits for the others' canaries")
    jobs.enter(:rolling)
    proceed
    assert_equal(%i[canary rolling], states)
    finish(jobs)
    proceed
    assert_equal(:booting, release.state)
    web.enter(:rolling)
    finish(web)
    assert_equal([:current, 1], [release.state, release.number])
    assert_equal([%i[a], []], [web.listeners, jobs.listeners])
  end

  def test_a_release_that_is_not_to_be_tried_in_any_pool
    release = reload
    release.untried = "pando reload --now"

    assert_equal(["pando reload --now"] * 2, upcoming.map(&:untried))
    assert_nil(release.unproven)
    upcoming.last.unproven = "no request came"
    assert_equal("no request came", release.unproven, "one is enough")
  end

  def test_the_watch_over_a_release_is_that_over_each_pool
    @jobs.generations.watched = true
    @jobs.generations.remaining = 12.0
    @jobs.generations.occupation = ["generation 1 is watched", 12.0]
    assert_equal([true, 12.0, ["generation 1 is watched", 12.0]],
                 [@pools.watching?, @pools.remaining, @pools.occupation])
    @pools.end_watch("another reload was requested")

    refute_predicate(@pools, :watching?)
  end

  def test_one_that_comes_to_nothing_takes_the_others_with_it
    release = reload
    upcoming.last.enter(:discarded, reason: "no gem")

    assert_equal([:discarded, "jobs: no gem"], [release.state, release.reason])
    proceed
    assert_equal([upcoming.first, "jobs does not run the new release"], @web.generations.withdrawn)
    assert_nil(@jobs.generations.withdrawn)
  end

  def test_a_mold_that_is_lost_later_has_served
    release = reload
    upcoming.each { |generation| %i[ready canary rolling current].each { |state| generation.enter(state) } }

    upcoming.first.enter(:retired) # before anybody has asked for the release's state
    assert_equal([:current, true], [release.state, release.served?])
  end

  def test_who_shares_the_first_ones_boot_comes_later
    @jobs.waits = true
    @pools.boot
    proceed

    assert_equal([1, nil], @pools.map(&:boots))
    @web.due = now + 9
    @jobs.due = 0.0
    assert_equal(@web.due, @pools.due, "nothing happens in a pool that waits")
    @jobs.waits = false
    2.times { proceed }
    assert_equal([1, 1], @pools.map(&:boots))
  end

  def test_so_it_does_in_a_reload
    @jobs.waits = true
    release = reload
    @web.generations.upcoming.enter(:ready)
    proceed

    assert_nil(@jobs.generations.upcoming)
    @jobs.waits = false
    proceed
    assert_equal(%i[ready booting], states)
    finish(@web.generations.upcoming.tap { |one| %i[canary rolling].each { |state| one.enter(state) } })
    assert_equal(:booting, release.state)
  end

  def test_one_that_reforks_meanwhile_comes_later_still
    @jobs.waits = true
    reload
    @jobs.generations.upcoming = refork = Generation.new(7, :refork, nil)
    @jobs.waits = false
    proceed

    assert_same(refork, @jobs.generations.upcoming)
    @jobs.generations.upcoming = nil
    proceed
    assert_equal(:reload, @jobs.generations.upcoming.purpose)
  end

  private

  def pools(*names)
    Pools.new(names.map { |name| Plan.new(name) }, @roster, @shutdown) { |*facts| FakePool.new(*facts) }
  end

  # What has happened to a child of the second pool, which has real ChildEvents.
  # @return [Child]
  def tell_for_real(news, detail)
    payload = Struct.new(:options).new(ClusterSupport.options)
    @jobs.child_events = Pando::Cluster::ChildEvents.new(@jobs, payload, nil)
    worker(@jobs, slot: 1).tap { |child| @pools.tell(child, news, detail) }
  end

  def worker(pool, slot: 0)
    pool.roster.admit(:worker, slot, 0, ClusterSupport::FakeLink.new, nil).tap(&:become_ready)
  end

  def start
    @pools.each { |pool| pool.generations.current = Generation.new(0, :boot, nil) }
    proceed
  end

  def reload = @pools.reload([], %i[a])
  def proceed = @pools.reconcile(false)
  def upcoming = @pools.map { |pool| pool.generations.upcoming }
  def states = upcoming.map(&:state)
  def finish(generation) = generation.enter(:current)
end
