# frozen_string_literal: true

require "test_helper"
require "pando/cluster/generations/vitals"
require "pando/cluster/upgrade/document"
require "pando/refork"

# The first refork of an app that has little to gain.
class ReforkThriftTest < Minitest::Test
  MIB = 1024.0**2

  def setup
    @rules = Pando::Refork::Auto::Rules.new
  end

  def auto = @auto ||= Pando::Refork::Auto.new(@rules)

  # @param size [Numeric, nil] MiB of all four
  def look(age, size, cpu: age / 1000.0, most: age, warmed: 4.0, reforks: 0)
    auto.decide(Pando::Cluster::Generations::Vitals.new(generation: reforks, reforks: reforks, seconds: 100.0,
                                                        workers: 4, age: age.to_f, most: most, warmed: warmed,
                                                        pss: size && (size * MIB), cpu: cpu))
  end

  def act(...) = look(...).action

  def test_much_growth_is_worth_a_refork_at_once
    look(0, 100)
    decision = look(50, 132)

    assert_equal [:refork, "50 requests"], decision.to_h.values_at(:action, :rule)
  end

  def test_little_growth_waits_until_a_refork_costs_next_to_nothing_beside_what_was_spent
    look(0, 100)
    first = look(50, 120)

    assert_equal [:rest, "0.025 > 0.005 * 0.05"], first.to_h.values_at(:action, :rule)
    assert_equal "a refork would save at most 16.7% of the memory, 5.0 MiB a worker: it waits until it costs less " \
                 "than 0.5% of the CPU time so far", first.reason
    assert_predicate auto, :resting?
    assert_equal %i[resting wait wait], [auto.phase, act(60, 120), act(4990, 120)]
    due = look(5000, 120)
    assert_equal [:refork, "0.025 <= 0.005 * 5.0"], due.to_h.values_at(:action, :rule)
  end

  def test_who_grows_twice_as_much_later_is_reforked_then
    look(0, 100)

    assert_equal %i[rest wait wait refork], [act(50, 120), act(100, 132), act(200, 163), act(300, 164)]
  end

  def test_hardly_any_growth_is_never_worth_a_refork
    look(0, 100)
    first = look(50, 102)

    assert_equal [:rest, "0.02 < 0.039"], first.to_h.values_at(:action, :rule)
    assert_equal "a refork would save at most 2.0% of the memory, 0.5 MiB a worker: too little", first.reason
    assert_equal %i[wait], [1000, 100_000].map { |age| act(age, 102) }.uniq
  end

  def test_where_one_serves_all_its_growth_counts_and_not_the_average
    look(0, 100)

    assert_equal :refork, act(13, 108, most: 52, warmed: 1.0)
  end

  def test_who_was_not_seen_at_its_birth_is_given_a_refork
    look(20, 100)

    assert_equal :refork, act(50, 101)
  end

  def test_where_something_waits_for_the_first_one_it_need_not_be_worth_it
    @rules.thrift = false
    look(0, 100)

    assert_equal :refork, act(50, 101)
  end

  def test_a_target_for_memory_overrides_it
    @rules.memory = 105 * (1024**2)
    look(0, 100)

    assert_equal :refork, act(100, 115)
  end

  def test_nobody_is_trained_for_a_refork_that_does_not_come
    look(0, 100)

    assert auto.trains?(0)
    look(50, 101)
    refute auto.trains?(0)
  end

  def test_after_a_refork_it_has_no_say
    look(0, 100)
    look(50, 120)
    look(0, 60, reforks: 1)

    assert_equal :warming, auto.phase
  end

  def test_it_comes_through_an_upgrade
    look(0, 100)
    look(50, 120)
    read = Pando::Cluster::Upgrade::Document.parse(
      Pando::Cluster::Upgrade::Document.new.add("policy", **auto.carried_fields).to_s
    )
    @auto = Pando::Refork::Auto.new(@rules).take_up(read.one("policy"))

    assert_equal %i[resting wait refork], [auto.phase, act(60, 120), act(70, 164)]
  end
end
