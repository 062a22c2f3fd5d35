# frozen_string_literal: true

require "test_helper"
require "pando/http/errors"
require "pando/http/pace"
require "open3"
require_relative "../cluster/support/clock"
require_relative "support/reactor_stage"

class HTTPPaceTest < Minitest::Test
  include ClusterSupport::Clock

  def setup
    @pace = Pando::HTTP::Pace.new(10.0, rate: 100.0)
  end

  def wait(seconds, happened: true)
    allowed = nil
    @pace.wait do |allowance|
      allowed = allowance
      elapse(seconds)
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

  def test_what_was_fast_pays_for_ten_seconds
    @pace.moved(1_000_000)
    wait(9)
    assert_in_delta 10.0, wait(9)
    assert_in_delta 2.0, wait(2)
    assert_raises(Pando::HTTP::ClientTooSlow) { wait(0) }
  end

  def test_time_spent_elsewhere_does_not_count
    elapse(1000)
    assert_in_delta 10.0, wait(0)
  end

  def test_a_pause_in_which_nothing_happens_is_the_last
    assert_raises(Pando::HTTP::ClientTooSlow) { wait(10, happened: nil) }
  end

  def test_the_rate_is_a_kibibyte_a_second
    @pace = Pando::HTTP::Pace.new(10.0)
    100.times { wait(1) && @pace.moved(1024) }
    10.times { wait(1) && @pace.moved(0) }
    assert_raises(Pando::HTTP::ClientTooSlow) { wait(0) }

    @pace.restart
    20.times { wait(1) && @pace.moved(512) }
    assert_raises(Pando::HTTP::ClientTooSlow) { wait(0) }
  end

  def test_without_a_rate_the_sum_is_all
    @pace = Pando::HTTP::Pace.new(10.0, rate: Float::INFINITY)
    wait(9)
    @pace.moved(1_000_000)
    assert_in_delta 1.0, wait(0)
  end
end

# The reactor's, which counts all the time that a transfer takes.
class HTTPReactorPaceTest < Minitest::Test
  # Milliseconds until a client is too slow that moves so many bytes at once, and so many each second from then on.
  def too_slow_after(timeout, fast, slow)
    program = Support::CProgram.path("pace", HTTPSupport::ReactorStage::SOURCES)
    output, status = Open3.capture2e(program, timeout.to_s, fast.to_s, slow.to_s)
    assert_predicate status, :success?, output
    output == "welcome\n" ? nil : Integer(output)
  end

  def test_a_client_may_fall_behind_by_the_timeout
    assert_equal 31_000, too_slow_after(30_000, 0, 0)
    assert_equal 61_000, too_slow_after(30_000, 0, 512)
  end

  def test_what_was_fast_pays_for_ten_seconds
    assert_equal 33_000, too_slow_after(30_000, 2048, 0)
    [20_000, 1_000_000, 1 << 30].each { |fast| assert_equal 41_000, too_slow_after(30_000, fast, 0) }
    assert_equal 81_000, too_slow_after(30_000, 1_000_000, 512)
  end

  def test_who_keeps_the_rate_is_welcome
    assert_nil too_slow_after(500, 0, 1024)
    assert_nil too_slow_after(0, 0, 0)
  end
end
