# frozen_string_literal: true

require "test_helper"
require "pando/refork/policy"
require "pando/sys"

class ReforkWarmthTest < Minitest::Test
  Warmth = Pando::Refork::Warmth
  Worker = Struct.new(:name, :requests, :sample)
  MIB = 1_048_576

  # @param faults [Numeric, nil] for each request, lately
  def worker(name, requests, code: 0, kinds: 10, faults: 4)
    spell = [faults ? 100 : 0, faults.to_i * 100, 0.1]
    sample = Pando::Sys::Sample.new(1.0, requests, 0.1, 100, 1, 1, code, kinds, *spell)
    Worker.new(name, requests, sample)
  end

  def warmest(*workers) = Warmth.warmest(workers)&.name

  def test_all_else_equal_the_one_that_has_served_most
    assert_equal :b, warmest(worker(:a, 100), worker(:b, 120), worker(:c, 110))
    assert_equal :a, warmest(worker(:a, 100), worker(:b, 100))
    assert_nil warmest
  end

  def test_who_serves_health_checks_is_not_warm
    assert_equal :b, warmest(worker(:a, 5000, kinds: 1), worker(:b, 300, kinds: 30))
  end

  def test_who_has_compiled_more_is_warmer
    assert_equal :b, warmest(worker(:a, 1000, code: MIB), worker(:b, 700, code: 2 * MIB))
    assert_equal :a, warmest(worker(:a, 1000, code: 2.0 * MIB), worker(:b, 300, code: 2.1 * MIB))
  end

  def test_who_has_no_code_among_those_that_do_is_not_chosen
    assert_equal :b, warmest(worker(:a, 9000), worker(:b, 50, code: 1000))
  end

  def test_who_has_settled_is_warmer
    assert_equal :b, warmest(worker(:a, 110, faults: 60), worker(:b, 100, faults: 2))
  end

  def test_more_requests_do_not_make_up_for_everything
    assert_equal :b, warmest(worker(:a, 1000, code: 2 * MIB, kinds: 30), worker(:b, 400, code: 2.4 * MIB, kinds: 36))
  end

  # A worker of an older Pando, or one that has just been born.
  def test_what_is_not_known_of_all_counts_for_none
    blank = Worker.new(:blank, 200, nil)

    assert_equal :blank, warmest(worker(:a, 100, code: MIB, kinds: 50), blank)
    assert_equal :a, warmest(worker(:a, 201, kinds: 1), blank)
    assert_equal :b, warmest(worker(:a, 100, faults: nil), worker(:b, 101, faults: 50))
  end

  def test_who_has_done_nothing_is_chosen_only_among_such
    assert_equal :b, warmest(worker(:a, 0, kinds: 0, faults: nil), worker(:b, 1, kinds: 1, faults: nil))
    assert_equal :a, warmest(worker(:a, 0, kinds: 0, faults: nil), worker(:b, 0, kinds: 0, faults: nil))
  end

  def test_the_choice_of_two_does_not_depend_on_a_third
    a = worker(:a, 1000, code: MIB, kinds: 20)
    b = worker(:b, 500, code: 2 * MIB, kinds: 21)

    assert_equal warmest(a, b), warmest(a, b, worker(:c, 10, code: 1, kinds: 1, faults: 900))
  end

  def test_for_people
    assert_equal "812 requests of 31 kinds, 2.0 MiB of JIT code, 3.0 page faults a request lately",
                 Warmth.new(worker(:a, 812, code: 2 * MIB, kinds: 31, faults: 3)).to_s
    assert_equal "1 request of 1 kind", Warmth.new(worker(:a, 1, kinds: 1, faults: nil)).to_s
    assert_equal "7 requests", Warmth.new(Worker.new(:a, 7, nil)).to_s
  end
end
