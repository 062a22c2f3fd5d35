# frozen_string_literal: true

require "test_helper"
require "socket"
require "pando/cluster/monitor"
require "pando/events"
require "pando/sys"

# `pando events -f`, in the monitor.
class FollowTaskTest < Minitest::Test
  Line = Pando::Cluster::Control::Line
  Session = Pando::Cluster::Control::Session

  def setup
    ours, @client = UNIXSocket.pair
    @session = Session.new(ours, Pando::Sys::Poller.new)
    @recent = Pando::Cluster::Control::RecentEvents.new
  end

  def teardown
    @session.close
    @client.close
  end

  def follow(*prefixes, **how)
    Pando::Cluster::Control::Tasks::Follow.new(@session, @recent, prefixes, **how).tap(&:start)
  end

  # As Control does it.
  def tell(task, *events)
    events.each do |event|
      @recent.add(event)
      task.observe(event)
    end
  end

  def event(name, **payload) = Pando::Event.new(name, payload, time: Time.at(1234.5678))

  def records
    @session.proceed
    @client.read_nonblock(1_000_000).lines.map { |line| Line.decode(line) }
  end

  def test_an_event_is_told_as_the_log_writes_it
    task = follow
    payload = { slot: 1, name: "x y", list: %w[a b], ratio: 0.12345678, backtrace: ["long"], no: nil }
    tell(task, event("worker.lost", **payload))

    assert_equal([["following", {}],
                  ["event", { "event" => "worker.lost", "time" => "1234.568", "slot" => "1", "name" => "x y",
                              "list" => "a,b", "ratio" => "0.123457" }]], records)
    refute_predicate(task, :over?)
  end

  def test_only_what_is_wanted_is_told_and_the_end_ends_it
    task = follow("refork.", "worker.lost")
    tell(task, *%w[refork.started worker.ready worker.lost monitor.stopped].map { |name| event(name) })

    assert_equal(%w[refork.started worker.lost], records.drop(1).map { |_, pairs| pairs["event"] })
    assert_predicate(task, :over?)
  end

  # It costs bounded memory, and learns how many it has missed.
  def test_a_client_that_does_not_read_misses_some
    task = follow
    20_000.times { |number| tell(task, event("worker.ready", slot: number, reason: "x" * 100)) }
    refute_predicate(@session, :closed?)
    refute_predicate(@session, :prompt?)
    seen = []
    seen.concat(records.tap { task.check }) until @session.prompt? && @client.wait_readable(0).nil?
    missed, told = %w[missed event].map { |wanted| seen.filter_map { |word, pairs| pairs if word == wanted } }

    assert_equal(1, missed.size)
    assert_equal(20_000, told.size + missed.first["count"].to_i)
    kept = Pando::Cluster::Control::RecentEvents::KEPT
    assert_equal((0...20_000).last(kept), told.last(kept).map { |pairs| pairs["slot"].to_i })
  end

  # A service that takes another's place goes on where that was.
  def test_events_after_the_last_one_that_the_client_knows
    tell(follow, *%w[a.one b.two a.three].map { |name| event(name) })
    records
    follow("a.", after: @recent.last - 3 + 1, numbers: true)

    assert_equal([["following", { "number" => (@recent.last - 2).to_s }],
                  ["event", { "number" => @recent.last.to_s, "event" => "a.three", "time" => "1234.568" }]], records)
  end

  # It has missed nothing when it comes again, however many others there were.
  def test_a_client_that_rarely_wants_one_learns_how_far_it_is
    task = follow("a.", after: @recent.last, numbers: true)
    200.times { |number| @recent.add(event("b.#{number}")) }
    task.check

    assert_equal([["passed", { "number" => @recent.last.to_s }]], records.drop(1))
    tell(task, event("a.one"))
    follow("a.", after: @recent.last, numbers: true)
    assert_equal(%w[event following], records.map(&:first))
  end

  # The number is one of a monitor before the upgrade.
  def test_events_of_an_image_before_do_not_count_as_missed
    tell(task = follow(after: @recent.last - 1_000_000), event("a.one"))

    assert_equal(%w[following event], records.map(&:first))
    refute_predicate(task, :over?)
  end

  # The clock was set back between that monitor and this one.
  def test_a_number_from_the_future_is_one_of_an_image_before
    tell(follow, event("a.one"))
    records
    task = follow(after: @recent.last + 1_000_000, numbers: true)
    tell(task, event("a.two"))

    assert_equal([["following", (@recent.last - 2).to_s], ["event", (@recent.last - 1).to_s],
                  ["event", @recent.last.to_s]], records.map { |word, pairs| [word, pairs["number"]] })
  end

  def test_what_is_no_longer_kept_counts_as_missed_then
    kept = Pando::Cluster::Control::RecentEvents::KEPT
    (kept + 3).times { @recent.add(event("a.one")) }
    follow(after: @recent.last + 1_000_000)

    assert_equal(["missed", { "count" => "3" }], records[1])
  end
end
