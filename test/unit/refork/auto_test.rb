# frozen_string_literal: true

require "test_helper"
require "pando/cluster/generations/vitals"
require "pando/cluster/upgrade/document"
require "pando/refork"

# `refork :auto` decides by figures alone.
class ReforkAutoTest < Minitest::Test
  MIB = 1024.0**2
  Conditions = Struct.new(:obstacle, :quiet?)

  def setup
    @rules = Pando::Refork::Auto::Rules.new(floor: 0.0)
    @generation = 0
    @reforks = 0
  end

  def auto = @auto ||= Pando::Refork::Auto.new(@rules)

  # What it says to a worker's age and the memory of all, in MiB. A request takes a millisecond, the first ones half a
  # second more.
  def look(age, size = 100.0, on: nil, seconds: 100.0, workers: 4, cpu: 0.5 + (age / 1000.0),
           most: age)
    vitals = Pando::Cluster::Generations::Vitals.new(generation: @generation, reforks: @reforks, seconds: seconds,
                                                     workers: workers, age: age.to_f, most: most, cpu: cpu,
                                                     pss: size && (size * MIB))
    on ? auto.decide(vitals, on) : auto.decide(vitals)
  end

  def act(...) = look(...).action

  def refork
    @generation += 1
    @reforks += 1
  end

  # The first generation has been forked at 50 requests, and the second one was hardly any leaner.
  def settle
    look(50)
    refork
    assert_equal :settle, act(50, 98)
  end

  # The others shall not wait for a refork that does not come.
  def test_one_is_trained_until_the_refork_is_long_overdue
    held_up = Conditions.new("a reload is under way", true)
    look(199, 100, on: held_up)
    assert auto.trains?(0)

    look(200, 100, on: held_up)
    refute auto.trains?(0)
    refork
    look(10, 90)
    assert auto.trains?(1)
  end

  def test_the_first_refork_comes_at_fifty_requests
    assert_equal %i[wait refork], [act(49), act(50)]
    assert_equal "50 requests", look(51).rule
  end

  def test_the_age_of_the_one_who_has_served_most_counts_and_memory_at_the_same_age_of_all
    assert_equal %i[wait refork], [act(12, most: 48), act(13, most: 52)] # a trainee
    refork
    assert_equal %i[wait wait refork], [act(12, 80, most: 120), act(14, 90, most: 103), act(15, 90, most: 104)]
  end

  def test_as_long_as_memory_at_the_same_age_falls_each_comes_at_double_the_age_of_the_last
    look(50, 100)
    refork
    assert_equal %i[wait wait wait], [act(20, 80), act(50, 94), act(99, 120)]
    assert_equal :refork, act(100, 120)
    refork
    assert_equal %i[wait wait refork], [act(100, 110), act(199, 120), act(200, 120)]
  end

  def test_hardly_less_at_the_same_age_ends_the_warming
    look(50, 100)
    refork
    assert_equal :wait, act(49, 90)
    decision = look(50, 98)

    assert_equal %i[settle warming], [decision.action, decision.phase]
    assert_equal "gain 0.02 < 0.04", decision.rule
    assert_equal "at the age of 50 requests it has 2.0% less memory than the generation before it had, and has taken " \
                 "0.0% less CPU time", decision.reason
    assert_equal :paying, auto.phase
    assert_equal :wait, act(200, 96)
  end

  def test_one_that_has_much_more_than_the_one_before_is_replaced
    look(50, 100)
    refork
    assert_equal :wait, act(50, 110)

    assert_equal :refork, act(100, 112)
  end

  # As much as it would have to buy.
  def test_less_cpu_time_at_the_same_age_counts_as_memory
    look(100, 100, cpu: 1.0)
    refork
    look(90, 90, cpu: 0.75)
    look(110, 100, cpu: 0.95) # at 100: 15% less
    decision = look(200, 110, cpu: 2.0)

    assert_equal :refork, decision.action
    assert_equal "a worker served 200 requests; at the age of 100 requests it has 0.0% less memory than the " \
                 "generation before it had, and has taken 15.0% less CPU time", decision.reason
  end

  def test_by_a_little_cpu_time_differs_anyway
    look(100, 100, cpu: 1.0)
    refork
    look(90, 90, cpu: 0.85)

    assert_equal :settle, act(110, 100, cpu: 0.99) # at 100: 8% less
  end

  def test_more_cpu_time_is_not_held_against_it
    look(50, 100)
    refork
    [40, 60].each { |age| act(age, 90, cpu: 9.0) }

    assert_equal :refork, act(100, 100)
  end

  def test_cpu_time_that_was_not_seen_at_that_age_says_nothing
    look(50, 100)
    refork

    decision = look(52, 100, cpu: 0.1)

    assert_equal :settle, decision.action
    assert_equal "at the age of 50 requests it has 0.0% less memory than the generation before it had", decision.reason
  end

  def test_once_its_price_is_known_doubling_must_pay_too
    look(50, 100)
    refork
    assert_equal :wait, act(50, 90)
    assert_equal :refork, act(1000, 95) # half a second at the beginning: 500 requests, but nobody knows yet
    refork
    [400, 900].each { |age| assert_equal :wait, act(age, 80) }
    assert_equal :wait, act(1000, 85)
    decision = look(2000, 85)

    assert_equal [:settle, "0.105 * 4000 < 3 * 500"], decision.to_h.values_at(:action, :rule)
    assert_equal :paying, auto.phase
  end

  def test_who_comes_from_an_old_worker_is_warm
    look(5000, 100)
    refork

    assert_equal "age 5000 > 3200", look(10, 50).rule
    assert_equal :paying, auto.phase
  end

  def test_memory_that_is_not_known_yet_is_waited_for
    look(50, nil)
    look(50, 100)
    refork

    assert_equal :wait, act(60, nil)
    assert_equal :settle, act(61, 100)
  end

  # As it has gone on growing, it would seem to have more.
  def test_memory_that_becomes_known_late_is_not_compared
    look(50, 100)
    refork

    assert_equal %i[wait wait wait], [act(50, nil), act(62, nil), act(63, 120)]
    assert_equal :refork, act(100, 130)
  end

  def test_where_memory_cannot_be_known_it_doubles_all_the_same
    look(50, nil)
    refork

    assert_equal %i[wait refork], [act(99, nil), act(100, nil)]
  end

  def test_a_refork_must_buy_three_percent_of_memory_for_one_of_cpu_time
    settle
    ages = (100..9000).step(100).to_a
    due = ages.find { |age| act(age, 100 + (age / 50.0)) == :refork }
    # half a second at the beginning is 500 requests; memory grows by a mebibyte in 50 requests
    expected = ages.find { |age| (1 - ((100 + (age / 100.0)) / (100 + (age / 50.0)))) * age >= 3 * 500 }

    assert_in_delta expected, due, 300
    assert_match(/\A0\.\d+ \* #{due} >= 3 \* \d+\z/, look(due, 100 + (due / 50.0)).rule)
  end

  def test_the_price_is_the_median_of_the_last_three
    settle
    [0.2, 0.9, 0.3].each do |price|
      [400, 1200].each { |age| look(age, 100, cpu: price + (age / 1000.0)) }
      refork
    end
    [10, 400, 1200].each { |age| look(age, 100, cpu: 0.4 + (age / 1000.0)) }

    assert_in_delta 400, look(1300, 100, cpu: 0.4 + 1.3).cost, 1
  end

  # Its price is known, but the warming would wait until 2400 requests. The next doubling is not put back by it.
  def test_while_it_warms_up_one_may_pay_before_its_turn
    look(50, 200)
    refork
    look(50, 100)
    act(1200, 100, cpu: 0.1 + 1.2)
    refork
    [50, 100, 400, 800].each { |age| assert_equal :wait, act(age, 80, cpu: 0.1 + (age / 1000.0)) }
    decision = look(900, 160, cpu: 0.1 + 0.9) # a full collection

    assert_equal [:refork, :warming, "0.471 * 900 >= 3 * 100"], decision.to_h.values_at(:action, :phase, :rule)
    refork
    [50, 900].each { |age| act(age, 60, cpu: 0.1 + (age / 1000.0)) }
    assert_equal "the next refork is due at 2400 requests", look(2000, 60, cpu: 0.1 + 2.0).reason
  end

  def test_nothing_pays_before_the_price_is_known
    settle

    assert_equal %i[wait wait], [act(400, 500), act(700, 500)]
    assert_nil look(799, 500).cost
    assert_in_delta 500, look(800, 500).cost, 1
  end

  def test_it_stops_when_memory_grows_no_more_and_begins_again_when_it_does
    settle
    actions = [400, 500, 600, 700, 800, 900].map { |age| look(age, 120) }.select(&:news?)

    assert_equal [:rest], actions.map(&:action)
    assert_equal :resting, auto.phase
    assert_equal :wait, act(9000, 123)
    assert_equal %i[rearm wait wait], [act(10_000, 127), act(10_100, 127), act(19_000, 127)]
    assert_equal :refork, act(30_000, 300)
  end

  def test_hardly_any_memory_is_not_worth_it_however_long_it_takes
    settle
    actions = (100..100_000).step(100).map { |age| act(age, 100 + (age / 20_000.0)) }

    refute_includes actions, :refork
  end

  def test_less_than_a_mebibyte_a_worker_is_not_worth_it_whatever_share_that_is
    look(50, 8)
    refork
    decision = look(50, 5)

    assert_equal [:settle, "gain 0.375 < 0.5"], decision.to_h.values_at(:action, :rule)
    refute_includes((100..9000).step(100).map { |age| act(age, 5 + (age / 3000.0)) }, :refork)
  end

  def test_a_price_is_at_least_what_a_fork_takes
    settle
    [400, 900].each { |age| look(age, 98, cpu: age / 10_000.0) }

    assert_in_delta 50.0, look(1000, 98, cpu: 0.1).cost # of a tenth of a millisecond each: five milliseconds
  end

  def test_a_target_for_memory_comes_before_the_price
    @rules.memory = 150 * (1024**2)
    settle

    assert_equal %i[wait wait], [act(100, 149), act(120, 149)]
    decision = look(200, 170)
    assert_equal :refork, decision.action
    assert_includes decision.rule, "memory #{(170 * MIB).round} > #{@rules.memory}"
  end

  def test_over_the_target_a_refork_that_saves_nothing_is_none
    @rules.memory = 90 * (1024**2)
    settle

    assert_equal [:wait], (60..1000).step(20).map { |age| act(age, 98) }.uniq - %i[rest]
  end

  def test_the_floor_spaces_reforks_but_the_first_one
    @rules.floor = 30.0
    assert_equal :refork, act(50, seconds: 0.1)
    refork
    assert_equal :wait, act(50, 50, seconds: 1.0)
    waiting = look(100, 80, seconds: 29.0)

    assert_equal [:wait, "a refork is due, but the last one was less than 30.0 s ago"],
                 [waiting.action, waiting.reason]
    assert_equal :refork, act(110, 80, seconds: 30.0)
  end

  def test_the_ceiling_does_not_ask_whether_it_pays
    @rules.ceiling = 3600.0
    settle

    assert_equal %i[wait refork], [act(60, 98, seconds: 3599.0), act(70, 98, seconds: 3600.0)]
  end

  def test_what_stands_against_it_is_waited_for
    reload = Conditions.new("a reload is under way", true)

    assert_equal ["a refork is due, but a reload is under way", "50 requests"],
                 look(50, on: reload).to_h.values_at(:reason, :rule)
    assert_equal :refork, act(51, on: Conditions.new(nil, true))
  end

  def test_a_quiet_moment_is_waited_for_but_not_for_ever
    busy = Conditions.new(nil, false)

    assert_equal %i[wait wait], [act(50, on: busy, seconds: 5.0), act(60, on: busy, seconds: 14.9)]
    assert_equal :refork, act(70, on: busy, seconds: 15.0)
  end

  def test_a_quiet_moment_is_taken_at_once
    assert_equal :wait, act(50, on: Conditions.new(nil, false), seconds: 5.0)
    assert_equal :refork, act(51, on: Conditions.new(nil, true), seconds: 5.5)
  end

  def test_what_stands_against_it_is_asked_only_when_it_matters
    assert_equal :wait, act(10, on: nil)
    assert_equal :wait, act(20, on: Object.new) # would raise
  end

  def test_an_attempt_that_came_to_nothing_leaves_no_trace
    assert_equal %i[refork refork], [act(50), act(55)]
    assert_equal :warming, auto.phase
  end

  def test_a_cold_mold_begins_anew
    settle
    @generation += 1
    @reforks = 0

    assert_equal %i[wait warming], [act(49), auto.phase]
    assert_equal :refork, act(50)
  end

  def test_a_cluster_of_another_size_is_measured_anew
    settle
    (100..2000).step(100) { |age| look(age, 100) }
    grown = look(2100, 200, workers: 8)

    assert_in_delta 0.0, grown.saving
  end

  def test_what_it_knows_comes_through_an_upgrade
    settle
    (100..1000).step(100) { |age| look(age, 100 + (age / 50.0)) }
    before = look(1100, 122.0)
    read = Pando::Cluster::Upgrade::Document.parse(
      Pando::Cluster::Upgrade::Document.new.add("policy", **auto.carried_fields).to_s
    )
    told = auto.explain[:decided]
    @auto = Pando::Refork::Auto.new(@rules).take_up(read.one("policy"))

    after = look(1100, 122.0)

    assert_in_delta before.saving, after.saving, 1e-6
    assert_in_delta before.cost, after.cost, 1e-6
    assert_equal [:paying, told], [auto.phase, auto.explain[:decided]]
  end

  def test_it_explains_itself
    assert_equal({ phase: :warming }, auto.explain)
    look(20)

    assert_equal "the next refork is due at 50 requests", auto.explain[:waits]
    look(50)
    assert_equal ["refork: a worker served 50 requests", nil], auto.explain.values_at(:decided, :waits)
  end
end
