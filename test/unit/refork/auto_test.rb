# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "support/auto_figures"

# `refork :auto` decides by figures alone.
class ReforkAutoTest < Minitest::Test
  include ReforkSupport::AutoFigures

  def test_the_first_refork_comes_at_fifty_requests_where_growth_since_birth_pays
    assert_equal :wait, act(0, 100)
    assert_equal :wait, act(49, 400)
    decision = look(50, 400)

    assert_equal [:refork, "a worker served 50 requests", 300 * MIB], decision.to_h.values_at(:action, :reason, :saving)
    assert_equal "300.0 MiB * 5 s >= 204.8 MiB s", decision.rule # 4 workers, 25 ms, 2 GiB
  end

  def test_the_first_refork_waits_until_it_pays
    look(0, 100)
    assert_equal :wait, act(50, 120)
    assert_equal "a refork would save 20.0 MiB: it pays when that lasts for 10 s", look(60, 120).reason
    assert_equal :refork, act(103, 120)
  end

  def test_growth_counts_for_all_workers_where_one_serves_all
    look(0, 100)

    assert_equal :refork, act(13, 160, most: 52, seconds: 1.0, warmed: 1.0, cpu: 0.5)
  end

  def test_where_nobody_has_seen_the_birth_the_first_refork_comes_after_fifty_requests
    look(20, 100)

    assert_equal "50 requests", look(50, 100).rule
  end

  def test_while_the_app_warms_up_each_next_one_comes_at_double_the_age_at_the_latest
    look(0, 100)
    look(50, 400)
    refork
    look(0, 100)
    look(1, 200)

    assert_equal %i[wait refork], [act(99, 200), act(100, 200)]
    refork
    look(0, 100)
    look(1, 200)
    assert_equal %i[wait refork], [act(199, 200), act(200, 200)]
  end

  def test_who_comes_from_an_old_worker_is_warm
    look(0)
    look(3201, 400)
    refork
    decision = look(10)

    assert_equal %i[settle warming], decision.to_h.values_at(:action, :phase)
    assert_equal "3201 > 3200", decision.rule
    assert_equal :paying, auto.phase
    assert_equal 1, [act(20), act(30)].uniq.size
  end

  # Half of what it has grown by, for growth is steady, for as long as it has lived.
  def test_once_the_app_is_warm_what_is_above_the_average_must_pay
    settle
    age = due((0..5000).step(10)) { |requests| 100 + (requests / 10.0) }
    saved = (age / 10.0 / 2) * (age / 10.0)

    assert_in_delta 0.5 * 2 * 1024, saved, 100 # half a second of CPU time, at 2 GiB
  end

  def test_memory_that_grows_no_more_is_not_worth_it_however_long_that_lasts
    settle
    look(0, 100)
    look(1, 150)

    refute due((10..50_000).step(10)) { 150 }
  end

  def test_it_looks_again_as_long_as_memory_grows
    settle
    look(0, 100)
    refute(due((10..20_000).step(10)) { 100 })

    assert(due((20_010..60_000).step(10)) { |age| 100 + ((age - 20_000) / 100.0) })
  end

  def test_hardly_any_memory_is_never_worth_it
    settle
    look(0, 100)

    refute(due((10..50_000).step(10)) { |age| 100 + (age / 25_000.0) })
  end

  def test_one_that_pays_comes_before_its_turn
    look(0, 100)
    look(50, 400)
    refork
    look(0, 100)
    look(1000, 400)
    refork # the next one is due at 2000
    look(0, 100)

    assert_operator due((10..2000).step(10)) { |age| 100 + (age / 2.0) }, :<, 1000
  end

  def test_once_the_app_is_warm_it_takes_a_small_part_of_the_cpu_time_at_most_however_much_it_saves
    settle
    look(50, 100, cpu: 1.0 + 0.5) # a second
    look(100, 900, cpu: 1.0 + 1.0)

    waiting = look(200, 1900, cpu: 3.0)

    assert_match(/\Aa refork would save \d+\.0 MiB, and take too much of the CPU time\z/, waiting.reason)
    assert_equal :wait, act(3000, 3800, cpu: 1.0 + 30.0)
    assert_equal :refork, act(3400, 4200, cpu: 1.0 + 34.0)
  end

  def test_what_it_prefers_is_another_price
    ages = %i[memory balanced cpu].map do |prefer|
      @auto = nil
      @generation = @reforks = 0
      @rules = Pando::Refork::Auto::Rules.for(prefer)
      settle
      due((0..20_000).step(10)) { |requests| 100 + (requests / 10.0) }
    end

    assert_equal ages.sort.uniq, ages
  end

  def test_the_cost_is_known_after_a_few_requests_by_what_a_request_took_before
    settle # a request takes ten milliseconds
    assert_nil look(24).cost

    assert_in_delta 4 * 0.3, look(25, cpu: 0.3 + 0.25).cost, 0.01
  end

  def test_the_cost_becomes_known_better_with_age
    settle
    look(50, cpu: 0.3 + 0.5)

    assert_in_delta 4 * 0.4, look(200, cpu: 0.4 + 2.0).cost, 0.01
    assert_in_delta 4 * 0.4, look(5000, cpu: 20.0).cost, 0.01
  end

  # Its first generation served 50 requests: too few to tell what one takes.
  def test_while_the_app_warms_up_later_requests_do_not_tell_what_the_first_ones_cost
    look(50, cpu: 5.0)
    refork
    look(25, cpu: 2.0, mold_cpu: 0.2)
    look(200, cpu: 10.0, mold_cpu: 0.2)

    assert_in_delta 4 * 0.225, look(800, cpu: 16.0, mold_cpu: 0.2).cost, 0.01
  end

  def test_once_it_is_warm_later_requests_tell
    @reforks = @generation = 1
    look(24, most: 3300) # another worker of it has served for long
    refork
    assert_equal :settle, act(0)
    look(25, cpu: 0.3 + 0.25)
    assert_in_delta 4 * 0.025, look(49, cpu: 0.3 + 0.49).cost, 0.01

    assert_in_delta 4 * 0.3, look(50, cpu: 0.3 + 0.5).cost, 0.01
  end

  def test_as_long_as_the_cost_is_not_known_only_the_warming_reforks
    look(0, 100)
    look(50, 400)
    refork
    look(0, 100)

    assert_equal :wait, act(20, 900, most: 75)
    assert_equal "a refork would save 800.0 MiB; its cost is not known yet",
                 look(24, 900, most: 80, seconds: 60.0).reason
  end

  def test_the_cost_is_the_median_of_the_last_three
    settle
    [0.2, 0.9, 0.3].each do |each|
      [50, 400, 1200].each { |age| look(age, 100, cpu: each + (age / 100.0)) }
      refork
    end

    assert_in_delta 4 * 0.3, look(10, 100).cost, 0.01
  end

  def test_the_median_of_two_costs_lies_between_them
    settle
    [0.2, 0.9].each do |each|
      [50, 400, 1200].each { |age| look(age, 100, cpu: each + (age / 100.0)) }
      refork
    end

    assert_in_delta 4 * 0.55, look(10, 100).cost, 0.01
  end

  def test_a_cost_is_at_least_what_a_fork_takes
    settle
    [50, 400].each { |age| look(age, cpu: age / 100.0) }

    assert_in_delta 4 * 0.025, look(900, cpu: 9.0).cost
  end

  # While an app warms up, a generation's first requests may take less than those before it, however much the mold took.
  def test_a_cost_is_at_least_what_the_mold_and_the_smallest_fork_take
    [0, 25, 50].each { |age| look(age, 100 + (age * 6), cpu: age / 10.0) }
    refork
    look(25, cpu: 2.0, mold_cpu: 0.2)

    assert_in_delta 4 * 0.225, look(30, cpu: 2.1, mold_cpu: 0.2).cost
  end

  def test_what_has_nothing_to_gain
    look(0, 100)
    look(800, 101)

    assert_equal "a refork would save 1.0 MiB, too little", look(900, 101).reason
    look(1000, 150)
  end

  def test_it_says_why_memory_cannot_be_known
    @obstacle = "there is no such file"

    assert_equal "there is no such file", look(49, nil).reason
  end

  def test_memory_that_is_not_known_yet_is_waited_for_but_not_for_a_turn
    look(0, nil)
    assert_equal "memory has not been measured yet", look(49, nil).reason

    assert_equal :refork, act(50, nil)
  end

  def test_a_second_may_stand_for_many
    rules = Pando::Refork::Auto::Rules.for(scale: 60)

    assert_equal [1 / 6.0, 2.0, 1.0], [rules.floor, rules.most, rules.lull]
    assert_in_delta 2.0 * (1024**3) / 60, rules.rate
  end

  def test_an_attempt_that_came_to_nothing_leaves_no_trace
    look(0, 100)

    assert_equal %i[refork refork], [act(50, 400), act(55, 400)]
    assert_equal :warming, auto.phase
  end

  def test_a_generation_that_was_rolled_back_leaves_no_trace
    settle
    refork
    look(0, 100)
    known = auto.serialized_fields.slice(:warm, :costs, :ancestor, :pace)
    [-2, 1].each do |more| # a reload, and a refork
      @generation += 1
      @reforks += more
      [0, 50, 200, 5000].each { |age| look(age, 100) }
      @generation -= 1
      @reforks -= more
      look(0, 100)

      assert_equal known, auto.serialized_fields.slice(:warm, :costs, :ancestor, :pace)
    end
  end

  # Then the number of the line is another one.
  def test_nor_one_whose_predecessor_had_healed
    settle
    refork
    look(0, 100)
    known = auto.serialized_fields.slice(:warm, :costs, :ancestor, :pace)
    @generation += 2
    @reforks += 1
    [0, 50, 200, 5000].each { |age| look(age, 100) }
    @generation -= 1
    @reforks -= 1
    look(0, 100)

    assert_equal known, auto.serialized_fields.slice(:warm, :costs, :ancestor, :pace)
  end

  def test_a_cold_mold_begins_anew
    settle
    @generation += 1
    @reforks = 0
    look(0, 100)

    assert_equal %i[wait warming], [act(49, 400), auto.phase]
    assert_equal :refork, act(50, 400)
  end

  def test_a_cluster_of_another_size_is_measured_anew
    settle
    (100..2000).step(100) { |age| look(age, 100) }

    assert_in_delta 0.0, look(2100, 200, workers: 8).saving
  end

  def test_what_it_knows_comes_through_an_upgrade
    settle
    (100..1000).step(100) { |age| look(age, 100 + (age / 50.0)) }
    before = look(1100, 122.0)
    told = auto.explain[:decided]
    upgrade

    after = look(1100, 122.0)

    assert_in_delta before.saving, after.saving, 1.0
    assert_in_delta before.cost, after.cost, 1e-6
    assert_equal [:paying, told], [auto.phase, auto.explain[:decided]]
  end

  def test_it_explains_itself
    assert_equal({ prefer: :balanced, phase: :warming }, auto.explain)
    look(0)
    look(20)

    assert_equal "the first refork is due at 50 requests", auto.explain[:waits]
    look(50, 400)
    assert_equal ["refork: a worker served 50 requests", nil], auto.explain.values_at(:decided, :waits)
  end
end
