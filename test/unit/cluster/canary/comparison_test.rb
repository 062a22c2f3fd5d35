# frozen_string_literal: true

require "test_helper"
require_relative "support/traffic"

# What the statistic takes for worse, shown with traffic that is made up, always the same.
class CanaryComparisonTest < Minitest::Test
  include CanarySupport

  AT_ONCE = Pando::Cluster::Canary::Trial::AT_ONCE
  DOUBT = Pando::Cluster::Canary::Trial::DOUBT
  AT_LAST = Pando::Cluster::Canary::Trial::AT_LAST

  MIXES = {
    "one kind of request" => [[1.0, 2_000, 1.1]],
    "very short ones" => [[1.0, 40, 1.3]],
    "a heavy tail" => [[0.7, 800, 1.5], [0.25, 15_000, 2.0], [0.05, 900_000, 3.0]],
    "two kinds far apart" => [[0.5, 300, 1.2], [0.5, 200_000, 1.2]]
  }.freeze

  MIXES.each do |name, mix|
    define_method(:"test_healthy_generations_with_#{name.tr(" ", "_")}_are_let_through") do
      rejected = (1..100).count { |seed| rejected?(Traffic.new(seed, mix), 1.0) }

      assert_equal 0, rejected
    end

    define_method(:"test_ten_times_slower_with_#{name.tr(" ", "_")}_is_seen") do
      seen = (1..40).count { |seed| rejected?(Traffic.new(seed, mix), 10.0) }

      assert_operator seen, :>=, name == "two kinds far apart" ? 35 : 40 # ranks tell little of kinds that lie far apart
    end
  end

  # A newborn is slow, and so were those before it.
  def test_what_all_newborns_have_is_not_held_against_one
    rejected = (1..100).count { |seed| rejected?(Traffic.new(seed, MIXES["one kind of request"], cold: 30), 1.0) }

    assert_equal 0, rejected
  end

  # Before it one worker has served nearly all, or a canary whose siblings were prefaulted, which are no measure.
  def test_few_of_those_before_were_as_young
    rejected = [[50, 5, 5], [60]].sum do |ages|
      (1..50).count do |seed|
        traffic = Traffic.new(seed, MIXES["a heavy tail"], cold: 30)
        rejected?(traffic, 1.0, traffic.of(ages.map { |requests| traffic.codes(requests) }))
      end
    end

    assert_equal 0, rejected
  end

  # The requests of today are others than those that the old workers began with.
  def test_what_is_slower_for_everybody_is_nobodys_fault
    traffic = Traffic.new(1, MIXES["one kind of request"])
    before = traffic.workers(2, 256)
    beside = traffic.curve(40, 8.0, one_band: true)

    assert(Comparison.new(traffic.curve(20, 8.0), before, traffic.curve(40, one_band: true)).complaint(AT_ONCE))
    refute(Comparison.new(traffic.curve(20, 8.0), before, beside).complaint(AT_LAST))
    assert(Comparison.new(traffic.curve(20, 80.0), before, beside).complaint(AT_ONCE))
  end

  # Without a present, time proves nothing, and CPU time only if it is much.
  def test_a_machine_that_has_more_to_do
    traffic = Traffic.new(1, MIXES["one kind of request"])
    before = traffic.workers(2, 256)
    jobs = [traffic.codes(40, 2.0), traffic.codes(40, 20.0)].map { |codes| codes.pack("C*") }
    waiting = Curve.new.add(Row.new(40, 0, jobs, []))

    refute(Comparison.new(waiting, before).complaint(AT_LAST))
    assert_match(/CPU time/, Comparison.new(traffic.curve(40, 8.0), before).complaint(AT_ONCE))
  end

  # It comes in bursts, and so those beside may have been spared.
  def test_what_was_spent_waiting_for_a_cpu
    traffic = Traffic.new(1, MIXES["one kind of request"])
    before = traffic.workers(2, 256)
    beside = traffic.curve(40, one_band: true)
    slow = traffic.curve(20, 6.0)

    assert_match(/times the CPU time/, Comparison.new(slow, before, beside, waited: 20_000.0).complaint(AT_ONCE))
    jobs = [traffic.codes(20), traffic.codes(20, 6.0)].map { |codes| codes.pack("C*") }
    waiting = Curve.new.add(Row.new(20, 0, jobs, []))
    assert_match(/times the time/, Comparison.new(waiting, before, beside).complaint(AT_ONCE))
    assert_match(/times the time/, Comparison.new(waiting, before, beside, waited: 1000.0).complaint(AT_ONCE))
    refute(Comparison.new(waiting, before, beside, waited: 10_000.0).complaint(*DOUBT))
  end

  def test_failures
    before = curve(1000, 0)

    refute(Comparison.new(curve(20, 1), before).complaint(AT_ONCE))
    assert_equal("3 of 3 requests failed, of those before 0 of 1000 requests",
                 Comparison.new(curve(3, 3), before).complaint(AT_ONCE))
    refute(Comparison.new(curve(20, 4), curve(1000, 200)).complaint(AT_LAST))
    refute(Comparison.new(curve(20, 20), before, curve(30, 30)).complaint(AT_LAST), "all fail now")
    assert(Comparison.new(curve(20, 20), before, curve(30, 1)).complaint(AT_ONCE))
  end

  def test_not_one_has_succeeded
    assert_equal("2 of 2 requests failed", Comparison.new(curve(2, 2), curve(0, 0)).hopeless)
    refute(Comparison.new(curve(2, 2), curve(10, 8)).hopeless, "nor do those before")
    refute(Comparison.new(curve(2, 1), curve(0, 0)).hopeless)
    refute(Comparison.new(curve(0, 0), curve(0, 0)).hopeless)
  end

  # A row is read while its worker goes on.
  def test_a_failure_without_its_request_is_no_proof
    refute(Comparison.new(curve(0, 1), curve(1000, 0)).complaint(AT_ONCE))
    refute(Comparison.new(curve(0, 1), curve(1000, 0), curve(40, 0)).complaint(*DOUBT))
    refute(Comparison.new(curve(1, 2), curve(1000, 0)).complaint(AT_ONCE))
  end

  def test_workers_that_end_as_nobody_wanted
    crashes = curve(60, 0).tap { |one| 2.times { one.add_crash } }

    assert(Comparison.new(crashes, curve(2000, 0)).crashing(0.005))
    refute(Comparison.new(crashes, curve(2000, 0).tap { |one| 40.times { one.add_crash } }).crashing(0.005))
    refute(Comparison.new(curve(60, 0).tap(&:add_crash), curve(2000, 0)).crashing(0.005), "once is nothing")
  end

  private

  # As Trial decides: at 20 requests, in doubt later, and at the end of its time, when there were 60.
  def rejected?(traffic, factor, before = traffic.workers(2, 60))
    codes = traffic.codes(60, factor)
    others = traffic.codes(60)
    (4..60).step(4).each do |requests|
      comparison = compare(traffic, codes.first(requests), before, others.first(requests))
      return true if comparison.complaint(AT_ONCE)
      return false if requests >= 20 && !comparison.complaint(*DOUBT)
    end
    !compare(traffic, codes, before, others).complaint(AT_LAST).nil?
  end

  def compare(traffic, codes, before, others)
    Comparison.new(traffic.of([codes]), before, traffic.of(others.map { |code| [code] }))
  end

  def curve(requests, failures)
    Curve.new.add(Row.new(requests, failures, ["", ""], []))
  end
end
