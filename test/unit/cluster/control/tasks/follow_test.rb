# frozen_string_literal: true

require "test_helper"
require "socket"
require "pando/cluster/control/session"
require "pando/cluster/control/tasks"
require "pando/sys"

# `pando events -f`, in the monitor.
class FollowTaskTest < Minitest::Test
  Line = Pando::Cluster::Control::Line
  Session = Pando::Cluster::Control::Session

  def setup
    ours, @client = UNIXSocket.pair
    @session = Session.new(ours, Pando::Sys::Poller.new)
  end

  def teardown
    @session.close
    @client.close
  end

  def follow(*prefixes)
    Pando::Cluster::Control::Tasks::Follow.new(nil, @session, prefixes).tap(&:start)
  end

  def event(name, **payload) = Pando::Event.new(name, payload, time: Time.at(1234.5678))

  def records
    @session.proceed
    @client.read_nonblock(1_000_000).lines.map { |line| Line.decode(line) }
  end

  def test_an_event_is_told_as_the_log_writes_it
    task = follow
    payload = { slot: 1, name: "x y", list: %w[a b], ratio: 0.12345678, backtrace: ["long"], no: nil }
    task.observe(event("worker.lost", **payload))

    assert_equal([["following", {}],
                  ["event", { "event" => "worker.lost", "time" => "1234.568", "slot" => "1", "name" => "x y",
                              "list" => "a,b", "ratio" => "0.123457" }]], records)
    refute_predicate(task, :over?)
  end

  def test_only_what_is_wanted_is_told_and_the_end_ends_it
    task = follow("refork.", "worker.lost")
    %w[refork.started worker.ready worker.lost monitor.stopped].each { |name| task.observe(event(name)) }

    assert_equal(%w[refork.started worker.lost], records.drop(1).map { |_, pairs| pairs["event"] })
    assert_predicate(task, :over?)
  end

  # It costs bounded memory, and learns how many it has missed.
  def test_a_client_that_does_not_read_misses_some
    task = follow
    20_000.times { |number| task.observe(event("worker.ready", slot: number, reason: "x" * 100)) }
    refute_predicate(@session, :closed?)
    refute_predicate(@session, :prompt?)
    seen = []
    seen.concat(records) until @session.prompt? && @client.wait_readable(0).nil?
    task.observe(event("worker.ready", slot: 0))
    last = records

    assert_equal(%w[missed event], last.map(&:first))
    told = seen.count { |word, _| word == "event" }
    assert_equal(20_000, told + last.first.last["count"].to_i)
  end
end
