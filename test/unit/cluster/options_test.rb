# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"

class CanaryCriteriaTest < Minitest::Test
  TERMS = Pando::Cluster::Canary::Criteria.new(requests: 20, seconds: 10.0, longest: 30.0)

  def test_new_code_serves_as_many_requests_for_as_long_as_it_says
    assert_equal([false, false, true], [[20, 9.9], [19, 60.0], [20, 10.0]].map { |seen| TERMS.enough?(*seen) })
    assert_equal([false, true], [79, 80].map { |served| TERMS.enough?(served, 10.0, 4) })
  end

  # Ten times as many requests in a tenth of the time.
  def test_of_code_that_serves_many_requests_soon_are_as_good_as_few_in_a_long_time
    terms = TERMS.for(:refork)

    assert_equal([true, true, true], [[20, 10.0], [40, 5.0], [200, 1.0]].map { |seen| terms.enough?(*seen) })
    assert_equal([false, false, false], [[19, 60.0], [40, 4.9], [9000, 0.9]].map { |seen| terms.enough?(*seen) })
    assert_equal([false, true], [[80, 9.9], [160, 5.0]].map { |seen| terms.enough?(*seen, 4) })
  end

  def test_what_has_been_forked_before_need_only_serve
    terms = TERMS.for(:again)

    assert_equal([false, false, true], [[19, 60.0], [20, 0.9], [20, 1.0]].map { |seen| terms.enough?(*seen) })
    assert terms.enough?(20, 1.0, 4)
  end

  def test_a_second_may_stand_for_many
    terms = TERMS.faster(10.0).for(:again)

    assert_equal [1.0, 3.0], [terms.seconds, terms.longest]
    assert terms.enough?(20, 0.1)
  end

  def test_an_event_names_what_must_be_done
    assert_equal({ requests: 20, seconds: 10.0, longest: 30.0 }, TERMS.facts)
    assert_equal({ requests: 20, seconds: 1.0, longest: 30.0 }, TERMS.for(:again).facts)
  end
end
