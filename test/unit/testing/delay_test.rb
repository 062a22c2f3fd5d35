# frozen_string_literal: true

require "test_helper"
require "pando/testing"
require "support/in_child"

# Reforks that have to wait, and what is said of them.
class TestingDelayTest < Minitest::Test
  include Support::InChild

  def setup = @delay = Pando::Testing::Delay.new

  def test_without_a_reason_nothing_is_said
    5.times { @delay.count }

    refute_predicate @delay, :begin_if_needed
    assert_equal [nil, nil, false], [@delay.never(5), @delay.to_the_end, @delay.told?]
  end

  def test_tests_count_from_the_refork_that_was_due
    3.times { @delay.count }
    @delay.begin("not now")
    2.times { @delay.count }

    assert_equal "2 tests ran without the last refork: not now (docs/testing.md)", @delay.to_the_end
    assert_equal "no refork took place in 5 tests: not now (docs/testing.md)", @delay.never(5)
    assert_nil @delay.never(6)
    @delay.over
    @delay.count

    assert_nil @delay.to_the_end
  end

  def test_tests_in_threads
    4.times { @delay.count_in_thread }

    assert_includes @delay.never(4), "no refork took place in 4 tests: the tests ran in threads"
    assert_nil @delay.never(5)
    assert_nil @delay.to_the_end
  end

  # What was said at once was that the next test would come first.
  def test_a_refork_that_is_tried_again_and_again_is_told_at_the_end_too
    _, errors = capture_io do
      2.times do
        @delay.try_again("a thread prevents it")
        @delay.count
      end
    end

    assert_equal "pando: the refork is postponed to the next test: a thread prevents it\n", errors
    refute_predicate @delay, :told?
    assert_equal "2 tests ran without the last refork: a thread prevents it (docs/testing.md)", @delay.to_the_end
  end

  # As a suite without Rails may define it, to test that it does without.
  def test_a_module_of_that_name_is_no_active_record
    needed = in_child do
      Object.send(:remove_const, :ActiveRecord) if defined?(ActiveRecord) # another test may have loaded it
      Object.const_set(:ActiveRecord, Module.new.tap { |stub| stub.const_set(:Base, Class.new) })
      @delay.begin_if_needed
    end

    assert_equal false, needed
  end

  def test_what_lasts_is_told_once_and_at_once
    _, errors = capture_io { 2.times { @delay.begin("it lasts", told: "no more") } }

    assert_equal "pando: no more\n", errors
    assert_predicate @delay, :told?
    @delay.begin("it may end soon")
    refute_predicate @delay, :told?
  end
end
