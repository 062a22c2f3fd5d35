# frozen_string_literal: true

require "test_helper"
require "pando/refork"

class ReforkTest < Minitest::Test
  def thresholds(setting, count)
    policy = Pando::Refork.policy(setting)
    (0...count).map { |reforks| policy.threshold(reforks) }
  end

  def test_a_list_gives_a_count_for_each_generation_and_repeats_the_last
    assert_equal [500, 750, 1000, 1000, 1000], thresholds({ after: [500, 750, 1000] }, 5)
  end

  def test_false_at_the_end_of_a_list_ends_the_reforking
    assert_equal [500, 750, nil, nil], thresholds({ after: [500, 750, false] }, 4)
  end

  def test_a_list_of_anything_else_is_refused
    [[], [false], [500, false, 750], [0], [-1], [1.5], ["500"], [nil]].each do |list|
      assert_raises(ArgumentError, list.inspect) { Pando::Refork.policy({ after: list }) }
    end
  end

  def test_a_policy_does_not_see_later_changes_of_the_list
    list = [500]
    policy = Pando::Refork.policy({ after: list })
    list.clear

    assert_equal 500, policy.threshold(0)
  end

  def test_only_auto_goes_by_what_is_measured
    measures = [:auto, :manual, { after: [1] }, false].map { |setting| Pando::Refork.policy(setting).measures? }

    assert_equal [true, false, false, false], measures
    assert_equal [nil, nil], thresholds(:auto, 2)
  end

  def test_manual_and_off_never_refork_by_themselves
    assert_equal [nil, nil], thresholds(:manual, 2)
    assert_equal [nil, nil], thresholds(false, 2)
  end

  def test_only_off_refuses_a_users_refork
    allowed = [:auto, :manual, { after: [1] }, false].map { |setting| Pando::Refork.policy(setting).manual? }

    assert_equal [true, true, true, false], allowed
  end

  def test_every_policy_chooses_the_best_candidate
    row = Struct.new(:requests, :sample)
    workers = [row.new(5), row.new(9), row.new(9), row.new(7)]

    [:auto, :manual, { after: [1] }].each do |setting|
      assert_same workers[1], Pando::Refork.policy(setting).choose(workers)
    end
  end

  def test_a_policy_says_why_that_one
    policy = Pando::Refork.policy(:manual)
    row = Struct.new(:requests, :sample)
    workers = [row.new(10), row.new(30)]

    assert_equal "the warmest of 2: 30 requests", policy.justify(workers[1], workers)
    assert_equal "the only one to choose from: 10 requests", policy.justify(workers[0], workers.first(1))
    assert_nil policy.choose([])
  end

  def test_an_unknown_setting_is_refused
    [nil, true, :sometimes, "auto", {}, { after: 500 }].each do |setting|
      assert_raises(ArgumentError, setting.inspect) { Pando::Refork.policy(setting) }
    end
  end
end
