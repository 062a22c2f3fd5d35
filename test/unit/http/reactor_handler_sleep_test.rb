# frozen_string_literal: true

require "test_helper"
require_relative "support/queued_case"

# When a worker behind the reactor sleeps and wakes, and when it leaves.
class HTTPQueuedWorkSleepTest < Minitest::Test
  include HTTPSupport::QueuedCase

  def test_it_sleeps_only_when_nothing_waits
    stage(HELLO)
    assert_predicate reactor, :lane_asleep?
    20.times { reactor.publish("GET / HTTP/1.1\r\nHost: a\r\n\r\n") }
    eventfd, manner = @stage.work.sources.first
    poller = Pando::Sys::Poller.new.add(eventfd, :call, manner)
    @stage.work.ready(*poller.wait(0))

    assert_includes 1..16, served, "a batch is bounded"
    until served == 20
      assert_equal [:call], poller.wait(90), "it must be called again"
      @stage.work.ready(:call)
    end
    assert_predicate reactor, :lane_asleep?
    poller.wait(0)
    assert_empty poller.wait(0), "nothing waits"
  end

  def test_the_reactor_is_woken_once_and_only_when_it_sleeps
    stage(HELLO).get
    refute reactor.rung?(reactor.eventfd)
    reactor.asleep!
    2.times { @stage.get }

    assert reactor.rung?(reactor.eventfd)
  end

  def test_the_reactor_is_woken_though_somebody_has_filled_its_counter
    stage(HELLO)
    poller = Pando::Sys::Poller.new.add(reactor.eventfd, :woken, :edge)
    reactor.eventfd.write_nonblock([(2**64) - 2].pack("Q"))
    assert_equal [:woken], poller.wait(0)
    reactor.asleep!
    @stage.get

    assert_equal [:woken], poller.wait(0)
  end

  # A worker that tests itself gets no request; those that came meanwhile are served afterwards.
  def test_while_it_requests_safe_paths_it_is_not_given_others
    asleep = []
    stage(rollout_safe_paths: ["/safe"]) do |env|
      asleep << [env["PATH_INFO"], reactor.lane_asleep?]
      reactor.publish("GET /a HTTP/1.1\r\nHost: a\r\n\r\n") if env["PATH_INFO"] == "/safe"
      [200, {}, []]
    end
    assert_predicate reactor, :lane_asleep?

    assert_equal "GET /safe 200", @stage.work.try_out
    assert_equal [["/safe", false], ["/a", false]], asleep
    assert_predicate reactor, :lane_asleep?
  end

  def test_a_lost_wake_up_is_found_when_idle
    stage(HELLO).work.idle
    reactor.publish("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert reactor.rung?(reactor.lane_eventfd)
    @stage.work.idle

    assert_equal :end, reactor.answer.ending
  end

  def test_who_leaves_takes_no_more_and_says_so
    stage(HELLO)
    @stage.worker.leaving = true
    reactor.publish("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    @stage.work.ready(nil)
    @stage.work.stop

    assert_equal [:made, true], [reactor.offer, reactor.lane_closed?]
    assert reactor.rung?(reactor.eventfd)
  end

  def test_at_the_end_of_the_server_all_that_waits_is_served
    stage(HELLO)
    3.times { reactor.publish("GET / HTTP/1.1\r\nHost: a\r\n\r\n") }
    @stage.work.stop(Process.clock_gettime(Process::CLOCK_MONOTONIC) + 20)

    assert_equal 3, reactor.frames.map(&:kind).count(:end)
    refute reactor.rung?(reactor.eventfd)
  end
end
