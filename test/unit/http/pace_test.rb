# frozen_string_literal: true

require "test_helper"
require "pando/http/errors"
require "pando/http/pace"

class HTTPPaceTest < Minitest::Test
  # A clock that goes on when the pace waits.
  class TestedPace < Pando::HTTP::Pace
    attr_accessor :now
  end

  def setup
    @pace = TestedPace.new(10.0, rate: 100.0)
    @pace.now = 0.0
  end

  def wait(seconds, happened: true)
    allowed = nil
    @pace.wait do |allowance|
      allowed = allowance
      @pace.now += seconds
      happened
    end
    allowed
  end

  def test_the_first_pause_may_be_as_long_as_the_setting
    assert_in_delta 10.0, wait(1)
  end

  def test_all_pauses_together_too
    wait(6)
    assert_in_delta 4.0, wait(4)
    assert_raises(Pando::HTTP::ClientTooSlow) { wait(0) }
  end

  def test_bytes_earn_time_but_never_a_longer_pause
    wait(6)
    @pace.moved(300)
    assert_in_delta 7.0, wait(0)
    @pace.moved(100_000)
    assert_in_delta 10.0, wait(0)
  end

  def test_time_spent_elsewhere_does_not_count
    @pace.now += 1000
    assert_in_delta 10.0, wait(0)
  end

  def test_a_pause_in_which_nothing_happens_is_the_last
    assert_raises(Pando::HTTP::ClientTooSlow) { wait(10, happened: nil) }
  end

  def test_without_a_rate_the_sum_is_all
    @pace = TestedPace.new(10.0, rate: Float::INFINITY)
    @pace.now = 0.0
    wait(9)
    @pace.moved(1_000_000)
    assert_in_delta 1.0, wait(0)
  end
end
