# frozen_string_literal: true

require "test_helper"
require "pando/events/catalogue"
require "pando/http/reactor_report"
require_relative "../cluster/support/clock"
require_relative "support/fake_worker"

# When a queue that does not move is told of.
class HTTPReactorStallTest < Minitest::Test
  include ClusterSupport::Clock
  include HTTPSupport::Events

  # Stands for Cluster::Reactor::Jobs.
  Jobs = Struct.new(:standstill, :workers, :to_line)

  def setup
    super
    @stall = Pando::HTTP::ReactorStall.new
    @jobs = Jobs.new([1], 1, "GET /itself")
  end

  # Six looks, one in a second.
  def told(waiting: 1, &change)
    events = events_of do
      6.times do |number|
        change&.call(number)
        @stall.look(waiting, @jobs)
        elapse 1
      end
    end
    events.map { |event| [event.name, event.payload] }
  end

  def test_five_seconds_are_told_once_with_what_the_worker_is_at_and_the_remedy
    assert_equal [["queue.stalled", { waiting: 1, seconds: 5, busy: "GET /itself",
                                      advice: "the only worker is at this request; to serve more at once, write " \
                                              "workers 2 or set WEB_CONCURRENCY=2" }]], told
    assert_empty told
  end

  def test_the_payload_is_that_of_the_catalogue
    known = Pando::Events::Catalogue.all.find { |event| event.name == "queue.stalled" }

    assert_equal known.keys, told.dig(0, 1).keys
  end

  def test_several_workers_are_counted
    @jobs.workers = 3

    assert_match(/\Aall 3 workers are at requests; .* workers 4 .*=4\z/, told.dig(0, 1, :advice))
  end

  def test_a_queue_that_moves_is_none
    assert_empty(told { |number| @jobs.standstill = [number / 5] })
  end

  def test_an_idle_worker_is_none
    @jobs.standstill = nil
    assert_empty told
  end

  def test_nobody_who_waits_is_none
    assert_empty told(waiting: 0)
  end

  def test_a_stall_that_is_over_may_come_again
    told
    @stall.look(0, @jobs)

    assert_equal ["queue.stalled"], told.map(&:first)
  end

  def test_a_queue_that_never_empties_is_one_stall
    told
    @jobs.standstill = [2]

    assert_empty told
  end
end
