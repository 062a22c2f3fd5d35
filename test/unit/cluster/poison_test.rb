# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "support/clock"
require_relative "support/fakes"

# Which requests are thought to have ended their workers, and what follows from it.
class PoisonRecordsTest < Minitest::Test
  include ClusterSupport::Clock
  include ClusterSupport::Listening

  Poison = Pando::Cluster::Poison

  # Remembers what was said, not only of what kind.
  class Line < ClusterSupport::FakeLink
    def texts = @texts ||= []

    def send(message, *)
      super.tap { |sent| texts << message.text if sent }
    end
  end

  def setup
    super
    @roster = ClusterSupport.roster
    @pid = 100
    settle
  end

  def settle(**terms)
    terms = Poison::Terms.new(deaths: 3, within: 60.0, **terms)
    @poison = Poison.new(@roster, ClusterSupport.options(poison: terms))
  end

  # @return [Poison] of the next image of the monitor
  def upgraded(poison = @poison)
    document = Pando::Cluster::Upgrade::Document.new
    poison.to_state(document)
    state = Pando::Cluster::Upgrade::State.new(document.class.parse(document.to_s))
    Poison.new(@roster, ClusterSupport.options).tap { |one| one.from_state(state) }
  end

  def worker(slot = 0)
    @roster.admit(:worker, slot, 0, Line.new, nil).tap do |child|
      child.adopt(ClusterSupport::FakePidfd.new(@pid += 1))
      child.become_ready
    end
  end

  # @return [Child] that has died at this request
  def died(path = "/deadly", ending = ClusterSupport.killed, verb: "GET", **how)
    child = worker
    child.row.start_job(verb, path, nil, nil)
    yield child if block_given?
    child.ending = ending
    @poison.died(child, **how)
    @roster.dismiss(child)
    child
  end

  def test_what_is_refused_now
    settle(refuse: 300.0)
    assert_empty @poison.refused
    3.times { died("/\xff".b) }
    elapse(100)
    assert_equal(["GET /\xff".b], @poison.refused.map { |one| one[:request] })
    assert_in_delta 200, @poison.refused.first[:seconds], 1
    elapse(201)
    assert_empty @poison.refused
  end

  def poisons = events("request.poison").map(&:payload)

  def test_who_exits_at_a_request_was_ended_by_it
    [0, 1, 4].each { |status| assert_predicate died("/#{status}", ClusterSupport.ended(status)), :suspect? }
  end

  def test_who_is_killed_at_a_request_is_suspected_if_another_has_died_at_the_same_within_a_minute
    refute_predicate died, :suspect?
    refute_predicate died("/other"), :suspect?
    refute_predicate died("/deadly", verb: "HEAD"), :suspect?
    assert_predicate died, :suspect?
    elapse(59)

    assert_predicate died, :suspect?
    elapse(60)

    refute_predicate died, :suspect?
  end

  # @param retried [Array<Integer>] those of the requests that another worker has had
  # @return [String] the path that is blamed; the first one runs longest
  def blamed(paths, retried, ending = ClusterSupport.killed(11))
    child = worker
    paths.each.with_index(1) { |path, number| child.row.start_job("GET", path, nil, nil, number) }
    retried.each { |number| child.row.retried!(number) }
    child.ending = ending
    @poison.died(child)
    child.blamed_job_name.last.tap { @roster.dismiss(child) }
  end

  def test_of_several_requests_the_one_that_has_seen_two_crashes_is_blamed
    assert_equal("/b", blamed(%w[/a /b /c], [2]))
    assert_equal("/d", blamed(%w[/d /e], [1, 2]), "nobody knows which one")
    assert_equal("/f", blamed(%w[/f /g], []))
    assert_equal("/h", blamed(%w[/h /i], [2], ClusterSupport.killed), "kill -9 from outside hits anybody")
    assert_equal("/f", blamed(%w[/f /j], [2]), "its path has ended a worker")
  end

  def test_an_idle_worker_dies_of_no_request
    child = worker
    child.ending = ClusterSupport.ended(1)
    @poison.died(child)

    refute_predicate child, :suspect?
  end

  def test_whom_we_have_killed_no_request_has_ended
    3.times { refute_predicate died { |child| child.kill("over its memory") }, :suspect? }

    refute_predicate died, :suspect?
    assert_empty poisons
  end

  def test_who_dies_of_its_self_test_has_no_clients_request
    child = @roster.admit(:worker, 0, 0, Line.new, nil)
    child.adopt(ClusterSupport::FakePidfd.new(1))
    child.row.start_job("GET", "/up", nil, nil)
    child.ending = ClusterSupport.ended(1)
    3.times { @poison.died(child) }

    assert_empty poisons
  end

  def test_a_job_node_has_no_request
    @poison = Poison.new(@roster, ClusterSupport.options(jobs: true))
    4.times { died }

    assert_empty poisons
  end

  def test_the_third_death_is_told_with_the_endings_and_the_next_when_the_window_is_over
    2.times { died("/deadly", ClusterSupport.ended(4)) }

    assert_empty poisons
    died("/deadly", oom: true)
    20.times { died }
    told = { request: "GET /deadly", count: 3, within: 60.0, reason: "status 4 (2), out of memory", refused: nil }
    assert_equal [told], poisons
    elapse(60)
    3.times { died }

    assert_equal([3, 3], poisons.map { |payload| payload[:count] })
  end

  def test_deaths_that_are_far_apart_are_none_of_poison
    10.times do
      died
      elapse(31)
    end

    assert_empty poisons
  end

  def test_the_settings_say_how_many_and_how_long
    settle(deaths: 2, within: 10.0)
    died
    elapse(11)
    died

    assert_empty poisons
    died
    assert_equal([[2, 10.0]], poisons.map { |payload| payload.values_at(:count, :within) })
  end

  def test_paths_that_a_client_invents_are_forgotten_the_oldest_first
    died("/first")
    died("/again")
    (Poison::PATHS - 2).times { |number| died("/#{number}") }
    died("/again")
    died("/one/more")

    refute_predicate died("/first"), :suspect?
    assert_predicate died("/again"), :suspect?
  end

  def test_the_bytes_of_a_path_do_no_harm
    3.times { died("/\xFF\e[31m\nx") }

    assert_equal "GET /?\e[31m\nx", poisons.first[:request]
  end

  def test_nothing_is_refused_unless_the_settings_say_so
    other = worker(1)
    5.times { died }
    @poison.reconcile

    assert_empty other.link.orders
  end

  def test_every_worker_is_told_once_also_one_that_starts_later_or_hears_late
    settle(refuse: 30.0)
    others = [worker(1), worker(2)]
    others.last.link.deaf = true
    3.times { died }
    others.last.link.deaf = false
    late = @roster.admit(:worker, 3, 0, Line.new, nil)
    2.times { @poison.reconcile }

    assert_equal([[:refuse]] * 3, [*others, late].map { |child| child.link.orders })
    assert_equal([30.0], poisons.map { |payload| payload[:refused] })
  end

  def test_what_is_refused_and_for_how_long
    settle(refuse: 30.0)
    other = worker(1)
    3.times { died("/\xC3 ü") }
    refusals = Poison::Refusals.new
    other.link.texts.each { |text| refusals.add(text) }

    assert_equal 30, refusals.seconds("GET", "/\xC3 ü")
    assert_nil refusals.seconds("POST", "/\xC3 ü")
    assert_nil refusals.seconds("GET", "/")
    elapse(29.5)
    assert_equal 1, refusals.seconds("GET", "/\xC3 ü".b)
    elapse(1)

    assert_nil refusals.seconds("GET", "/\xC3 ü")
  end

  def test_who_goes_on_killing_when_it_is_served_again_is_refused_again_at_once
    settle(refuse: 5.0)
    3.times { died }
    elapse(6)
    @poison.reconcile
    died

    assert_equal([[3, 5.0], [4, 5.0]], poisons.map { |payload| payload.values_at(:count, :refused) })
  end

  def test_an_upgrade_of_the_monitor_keeps_what_is_refused
    settle(refuse: 30.0)
    3.times { died("/\xC3 ü=%\n") }
    elapse(10)
    later = upgraded

    assert_equal([["GET /\xC3 ü=%\n".b, 20]], later.refused.map { |one| [one[:request], one[:seconds].round] })
    late = worker(2)
    2.times { later.reconcile }
    assert_equal([:refuse], late.link.orders)
    refusals = Poison::Refusals.new.tap { |one| one.add(late.link.texts.first) }
    assert_equal(20, refusals.seconds("GET", "/\xC3 ü=%\n"))
    elapse(21)
    assert_empty(upgraded(later).refused)
  end

  def test_the_state_of_an_older_pando_refuses_nothing
    later = Poison.new(@roster, ClusterSupport.options)
    later.from_state(Pando::Cluster::Upgrade::State.new)

    assert_empty(later.refused)
  end

  def test_a_path_that_may_have_been_cut_is_named_and_not_refused
    settle(refuse: 30.0)
    other = worker(1)
    3.times { died("/#{"a" * 200}") }
    @poison.reconcile

    assert_nil poisons.first[:refused]
    assert_empty other.link.orders
  end

  def test_so_many_are_refused_at_the_same_time_and_no_more
    settle(deaths: 1, refuse: 30.0)
    other = worker(1)
    (Poison::Ban::MOST + 5).times { |number| died("/#{number}") }

    assert_equal Poison::Ban::MOST, other.link.orders.size
    assert_equal(Poison::Ban::MOST, poisons.count { |payload| payload[:refused] })
  end

  def test_a_worker_takes_no_record_that_it_does_not_understand
    refusals = Poison::Refusals.new
    ["", "x", "1", "1 R0VU", "nan? R0VU Lw==", "9e9 % %", "#{now + 9} R0VU"].each { |text| refusals.add(text) }

    assert_nil refusals.seconds("GET", "/")
  end
end
