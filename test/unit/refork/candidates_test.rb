# frozen_string_literal: true

require "test_helper"
require "pando/refork/candidates"

class ReforkCandidatesTest < Minitest::Test
  Row = Struct.new(:slot, :requests, :safe, :excluded_as_source, :sample) do
    def fork_safe? = safe
    def excluded_as_source? = excluded_as_source
  end

  def row(slot, requests, safe: true, excluded_as_source: false) = Row.new(slot, requests, safe, excluded_as_source)
  def best(*rows) = Pando::Refork::Candidates.best(rows)&.slot

  def test_the_one_that_served_most
    assert_equal 2, best(row(1, 10), row(2, 30), row(3, 20))
  end

  def test_the_first_of_equals
    assert_equal 1, best(row(1, 10), row(2, 10))
  end

  def test_never_an_unsafe_or_barred_one
    assert_equal 3, best(row(1, 90, safe: false), row(2, 80, excluded_as_source: true), row(3, 5))
    assert_nil best(row(1, 90, safe: false))
  end

  def test_why_that_one
    rows = [row(1, 10), row(2, 30)]

    assert_equal "the warmest of 2: 30 requests", Pando::Refork::Candidates.explain(rows[1], rows)
    assert_equal "the only one to choose from: 10 requests", Pando::Refork::Candidates.explain(rows[0], rows.first(1))
  end

  def test_of_nobody_nobody
    assert_nil best
  end
end
