# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "../support/simulation"

# What the monitor knows comes through an upgrade.
class UpgradeStateTest < Minitest::Test
  include ClusterSupport::Listening

  Upgrade = Pando::Cluster::Upgrade
  Sys = Pando::Sys

  # As the next image has them, but that the descriptors are of this process still.
  class Descriptors
    def expect(numbers) = @left = numbers.dup

    def take(number)
      Sys.borrow(@left.delete(number)) { |theirs| Sys.disown(theirs.dup) }
    end
  end

  def setup
    super
    @cluster = ClusterSupport::Simulation.new(services: %i[mailer])
    @cluster.boot
    @processes = []
    @cluster.roster.to_a.each { |child| embody(child) }
  end

  def teardown
    @processes.each do |pid|
      Process.kill("KILL", pid)
      Process.wait(pid)
    end
    super
  end

  def test_children
    refork
    leaver, fat = @cluster.roster.ready_workers
    @cluster.rollout.ask_to_leave(leaver, "replaced")
    fat.kill("it is too fat", suspect: true)
    fat.excluded_as_source = true
    fat.replacement_cause = :memory
    fat.add_detail("line 1\n")
    fat.blame(12)
    roster = carry_over(@cluster.roster, Pando::Cluster::Roster.new(@cluster.roster.scoreboard))

    assert_equal(facts(@cluster.roster), facts(roster))
    again = roster[fat.seat]
    assert(again.condemned? && again.suspect? && again.excluded_as_source?)
    assert_equal(:memory, again.replacement_cause)
    assert_equal([true, false], [again.blames?(12), again.blames?(3)])
    assert_equal("line 1\n", again.detail)
    again.add_detail("line 2")
    assert_equal("line 1\nline 2", again.detail)
    assert_predicate(roster[leaver.seat], :patient?)
    assert_equal([@cluster.current_mold.pid], roster.molds.map(&:pid))
    assert_equal([[1, 0]], roster.workers.map { |worker| [worker.generation, worker.line] }.uniq)
  end

  def test_generations
    2.times { refork }
    @cluster.generations.current.backoff.fail
    other = generations(roster = carry_over(@cluster.roster, Pando::Cluster::Roster.new(@cluster.roster.scoreboard)))
    seen = @events.size
    carry_over(@cluster.generations, other, roster)

    now = other.current
    assert_equal([2, 2, :current, :refork], [other.reforks.count, now.number, now.state, now.purpose])
    assert_equal(@cluster.generations.current.began_at, other.current.began_at)
    assert_equal(1, other.current.backoff.failures)
    assert_same(roster.molds.first, other.current.mold)
    assert_empty(@events.drop(seen), "nothing has happened")
    old_source = @cluster.generations.current.source
    assert_equal([old_source.pid, old_source.slot], [other.current.source.pid, other.current.source.slot])
    refute_predicate(roster.ready_workers.first, :excluded_as_source?)
    refute(other.outdated?(roster.ready_workers.first))
    assert_equal(3, other.tap(&:begin_boot).upcoming.number, "no number is used twice")
  end

  def test_the_records_of_several_pools
    roster = Pando::Cluster::Roster.new(@cluster.roster.scoreboard)
    embody(@cluster.roster.of(1).admit(:worker, 3, 7, ClusterSupport::FakeLink.new, nil).tap(&:become_ready))
    @cluster.rollout.resize(5)
    state = several(@cluster.roster) { |part| @cluster.rollout.to_state(part) }
    state.meet(%w[web new jobs])
    roster.from_state(state)

    assert_equal([[3, 7]], roster.of(2).map { |child| [child.slot, child.generation] })
    assert_equal(5, rollout.tap { |one| one.from_state(state.part_of("jobs")) }.size)
    assert_raises(Upgrade::Unreadable) { rollout.from_state(state.part_of("web")) }
    assert_nil(state.part_of("new"))
  end

  def test_pools_that_are_to_be_no_more_are_refused
    state = several(@cluster.roster)

    error = assert_raises(Upgrade::Unreadable) { state.meet(%w[web]) }
    assert_match(/has web, jobs, and the configuration web:/, error.message)
    assert_raises(Upgrade::Unreadable) { several(@cluster.roster).meet(%w[jobs web]) }
  end

  def test_an_older_pando_wrote_several_with_another_number
    several = "pando 2\npool name=web\npool name=jobs\nend records=2\n"
    pools = Upgrade::Document.parse(several)
    assert_equal(%w[web jobs], pools.all("pool").map { |record| record.text(:name) })

    assert_equal(several.sub("2", "1"), pools.to_s)
  end

  def test_a_cluster_without_a_mold
    @cluster.generations.current.mold.then { |mold| @cluster.die(mold) }
    roster = carry_over(@cluster.roster, Pando::Cluster::Roster.new(@cluster.roster.scoreboard))
    other = carry_over(@cluster.generations, generations(roster), roster)

    assert_nil(other.current)
  end

  def test_the_number_of_workers
    @cluster.rollout.resize(5)
    assert_equal(5, carry_over(@cluster.rollout, rollout).size)
    assert_equal(7, carry_over(@cluster.rollout, rollout(workers: 7)).size, "another configuration wants so many")
  end

  def test_a_server_that_drains
    drain = -> { Pando::Cluster::Drain.new(@cluster.roster, @cluster.shutdown, ClusterSupport.options) }
    draining = drain.call.tap { |one| one.begin("test") }

    assert_equal(draining.since, carry_over(draining, drain.call).since)
    refute_predicate(carry_over(drain.call, drain.call), :begun?)
  end

  def test_services_are_those_of_the_mold
    options = ClusterSupport.options(services: %i[other new])
    services = Pando::Cluster::ServiceSupervisor.new(@cluster.roster, @cluster.spawner, @cluster.generations, options)
    carry_over(@cluster.services, services)

    assert_equal(%w[mailer], options.services)
    service = @cluster.roster.services.first
    @cluster.options.services = %i[clock]
    again = carry_over(@cluster.roster, Pando::Cluster::Roster.new(@cluster.roster.scoreboard))[service.seat]
    assert_equal("mailer", services.name(again), "a reload may have changed the list since it began")
  end

  def test_services_of_an_older_pando_have_the_names_of_their_slots
    @cluster.roster.services.each { |child| child.name = nil }
    services = Pando::Cluster::ServiceSupervisor.new(@cluster.roster, @cluster.spawner, @cluster.generations,
                                                     ClusterSupport.options)
    carry_over(@cluster.services, services, @cluster.roster)

    assert_equal(%w[mailer], @cluster.roster.services.map { |child| services.name(child) })
  end

  def test_a_state_of_another_process_s_protocol_is_refused
    state = Upgrade::State.new
    state.add("monitor", protocol: Pando::Cluster::PROTOCOL + 1)
    error = assert_raises(Upgrade::Unreadable) { read(state) }

    assert_match(/protocol #{Pando::Cluster::PROTOCOL + 1}, and Pando .* stop and start the server/, error.message)
  end

  def test_what_refers_to_nobody_is_refused
    state = Upgrade::State.new
    state.add("child", role: :worker, seat: 64, slot: 0, generation: 0, link: 0, pid: 1, pidfd: 0)
    add_head(state)

    error = assert_raises(Upgrade::Unreadable) do
      Pando::Cluster::Roster.new(@cluster.roster.scoreboard).from_state(read(state))
    end
    assert_equal('a record child has "64" for seat', error.message)
  end

  private

  # A process for one that had none so far.
  def embody(child)
    @processes << (pid = Process.spawn("sleep", "60"))
    link, other = Pando::Cluster::Link.pair
    (@ends ||= []) << other # collected, it would be closed
    child.instance_variable_set(:@link, link)
    child.instance_variable_set(:@pidfd, Sys::Pidfd.new(pid))
  end

  def refork
    assert(@cluster.generations.refork("test"))
    @cluster.settle
    @cluster.roster.each { |child| embody(child) if child.link.is_a?(ClusterSupport::FakeLink) }
  end

  # From one owner to another, which is made as at a start.
  def carry_over(from, to, roster = nil)
    state = Upgrade::State.new
    from.to_state(state)
    add_head(state)
    again = read(state)
    again.roster = roster
    to.from_state(again)
    to
  end

  # As a monitor writes it whose pools are web and jobs, the block what the latter has.
  def several(roster)
    state = Upgrade::State.new
    %w[web jobs].each { |name| state.add("pool", name: name) }
    roster.to_state(state)
    yield state.part(1) if block_given?
    add_head(state)
    read(state)
  end

  def add_head(state) = state.add("monitor", version: "1", protocol: Pando::Cluster::PROTOCOL, pid: Process.pid)

  def read(state)
    memory = IO.for_fd(Sys.sealed_memory("state", state.to_s))
    Upgrade::State.read(memory, Descriptors.new)
  ensure
    memory.close
  end

  def generations(roster)
    Pando::Cluster::Generations.new(roster, @cluster.spawner, @cluster.policy, ->(*) {})
  end

  def rollout(**options)
    wanted = ClusterSupport.options(**options)
    Pando::Cluster::Rollout.new(@cluster.roster, @cluster.spawner, @cluster.generations, wanted)
  end

  def facts(roster)
    roster.to_h do |child|
      [child.seat, [child.role, child.slot, child.generation, child.line, child.pid, child.state, child.deadline,
                    child.reason, child.verdict, child.unwanted, child.excluded_as_source?, child.blames?(12)]]
    end
  end
end
