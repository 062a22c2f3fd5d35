# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "pando/http/at_rest"
require_relative "../cluster/support/clock"

# When an HTTP worker can be forked.
class HTTPAtRestTest < Minitest::Test
  include ClusterSupport::Clock

  def setup
    @work = Object.new.extend(Pando::HTTP::AtRest)
  end

  def rest?(queued) = Pando::ForkSafety::QueuedWork.stub(:pending?, queued) { @work.rest? }

  def test_at_once_when_nothing_is_queued
    assert rest?(false)
  end

  def test_a_moment_without_background_jobs_is_waited_for_but_not_for_long
    refute rest?(true)
    elapse(Pando::HTTP::AtRest::LONGEST - 0.1)
    refute rest?(true)
    elapse(0.1)

    assert rest?(true)
    assert_operator @work.patience, :>, Pando::HTTP::AtRest::LONGEST, "else it would be refused"
  end

  def test_each_order_has_a_time_of_its_own
    rest?(true)
    elapse(60)
    @work.go_on

    refute rest?(true)
  end
end
