# frozen_string_literal: true

require "test_helper"
require "pando/http/client"

# What X-Request-Start is believed to say.
class HTTPQueueTimeTest < Minitest::Test
  # @param ago [Numeric] seconds
  # @return [Float, nil]
  def of(ago, unit: 1, before: "t=")
    start = Process.clock_gettime(Process::CLOCK_REALTIME) - ago
    text = unit == 1 ? format("%.6f", start) : (start * unit).to_i
    Pando::HTTP::QueueTime.of({ Pando::HTTP::QueueTime::FIELD => "#{before}#{text}" }, nil)
  end

  def test_seconds_milliseconds_and_microseconds
    [1, 1000, 1_000_000].product(["", "t="]) do |unit, before|
      assert_includes 7.0..60.0, of(7.002, unit: unit, before: before)
    end
  end

  def test_an_hour_is_believed_and_no_more
    assert_includes 3500.0..3600.0, of(3500)
    assert_nil of(3600.001)
  end

  def test_a_clock_may_be_ahead_by_a_second
    assert_includes 0.0..60.0, of(-0.999)
    assert_nil of(-60)
  end

  def test_what_is_not_believed_leaves_the_reactors_word
    assert_in_delta 0.5, Pando::HTTP::QueueTime.of({ Pando::HTTP::QueueTime::FIELD => "t=1" }, 0.5)
    assert_in_delta 0.5, Pando::HTTP::QueueTime.of({}, 0.5)
  end
end
