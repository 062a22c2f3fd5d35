# frozen_string_literal: true

require "test_helper"
require "socket"
require "pando/fork_safety"

class AuditGrowthTest < Minitest::Test
  def setup
    GC.start # what other tests left open is closed now, not meanwhile
    @now = 0.0
    @opened = []
  end

  def teardown
    @opened.each(&:close)
  end

  def test_one_a_second_is_found_within_ten_seconds
    watch = growth
    findings = seconds(10) { open_one and watch.check }

    refute_nil(findings.first)
    assert_equal([:growing_descriptors, :warning, "socket"],
                 findings.first.then { |one| [one.kind, one.severity, one.subject] })
    assert_operator(findings.first.details[:alike], :>=, 4)
    assert_equal("UDPSocket", findings.first.details[:io])
  end

  def test_it_is_told_again_only_when_it_has_doubled
    watch = growth
    findings = seconds(60) { open_one and watch.check }

    assert_includes(3..6, findings.size)
    totals = findings.map { |one| one.details[:added] }
    totals.each_cons(2) { |before, after| assert_operator(after, :>=, before * 2 * 0.9) }
  end

  def test_what_comes_and_goes_or_comes_at_once_is_no_growth
    watch = growth
    findings = seconds(30) do |second|
      second.even? ? open_one : close_one
      watch.check
    end
    20.times { open_one }
    findings += seconds(30) { watch.check }

    assert_empty(findings)
  end

  def test_a_slow_leak_is_found_in_the_end
    watch = growth
    findings = seconds(600) do |second|
      open_one if (second % 5).zero?
      watch.check
    end

    assert_equal(1, findings.size)
    assert_in_delta(100, findings.first.details[:alike], 15)
  end

  def test_it_counts_once_a_second_and_survives_what_proc_refuses
    counted = 0
    watch = growth(count: -> { (counted += 1) && raise(Errno::EACCES) })
    1000.times do
      @now += 0.01
      assert_nil(watch.check)
    end

    assert_includes(10..11, counted)
  end

  private

  def growth(**more) = Pando::ForkSafety::Audit::Growth.new(clock: -> { @now }, **more)

  def seconds(count)
    (1..count).filter_map do |second|
      @now += 1
      yield second
    end
  end

  def open_one = @opened.push(UDPSocket.new)
  def close_one = @opened.pop&.close
end
