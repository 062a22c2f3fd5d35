# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "tempfile"
require_relative "support/queued_case"

# A worker's answers that are larger than the room in its lane.
class HTTPQueuedRoomTest < Minitest::Test
  include HTTPSupport::QueuedCase

  def test_large_answers_wait_for_room
    large = "z" * 1_000_000
    stage { [200, {}, [large]] }
    answer = answer_read_meanwhile

    assert_equal [:end, true, large], [answer.ending, answer.keep, body(answer)]
  end

  def test_ordinary_answers_wait_for_room
    stage { [200, {}, ["y" * 20_000]] }
    10.times { reactor.publish("GET / HTTP/1.1\r\nHost: a\r\n\r\n") }
    thread = Thread.new { @stage.work.ready(nil) until served == 10 }
    frames = []
    frames.concat(reactor.frames) && Thread.pass while thread.alive?
    frames.concat(reactor.frames)

    assert_equal((1..10).to_a, frames.filter_map { |frame| frame.turn if frame.kind == :end })
    assert_equal(10, frames.sum { |frame| frame.payload.scan("y" * 20_000).size })
  end

  def answer_read_meanwhile
    turn = reactor.publish("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    thread = Thread.new { @stage.work.ready(nil) }
    answer = reactor.answer
    flunk("the worker hangs at turn #{turn}") unless thread.join(90)
    answer
  end

  def test_many_small_parts
    parts = Array.new(5000) { |index| index.even? ? "part#{index}" : "" } + ([""] * 100)
    stage { [200, {}, parts] }
    answer = answer_read_meanwhile

    assert_equal [parts.join, true], [body(answer), answer.keep]
  end

  def test_a_small_file_travels_in_frames
    answer = nil
    Tempfile.create("file") do |file|
      file.write("f" * 60_000)
      file.flush
      answer = stage { [200, {}, File.open(file.path)] }.get
    end

    assert_equal [:end, "f" * 60_000, true], [answer.ending, body(answer), answer.keep]
  end

  def test_a_large_file_travels_as_a_descriptor
    frames = record = nil
    Tempfile.create("file") do |file|
      file.write("f" * 100_000)
      file.flush
      stage { [200, {}, File.open(file.path)] }
      reactor.publish("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      @stage.work.ready(nil)
      frames = reactor.frames
      record = Pando::Sys.receive_record(reactor.socket)
    end

    assert_equal %i[data file end], frames.map(&:kind)
    assert_equal [100_000, reactor.ticket(1)], [frames[1].value, record.first]
    assert_equal "f" * 100_000, IO.for_fd(record.last.first).tap(&:rewind).read
  end

  # It is the reactor's to say that a client is too slow.
  def test_a_client_is_waited_for_as_long_as_the_reactor_turns
    turns = 0
    stage(write_timeout: 0.05) { [200, {}, ["z" * 1_000_000]] }
    answer = reactor.channel.stub(:stats, -> { { "turns" => (turns += 1) } }) do
      reactor.publish("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      thread = Thread.new { @stage.work.ready(nil) }
      wait_until { turns > 3 }
      reactor.answer.tap { thread.join(90) }
    end

    assert_equal :end, answer.ending
  end

  def test_a_client_that_takes_nothing_costs_a_bounded_time
    events = events_of do
      stage(write_timeout: 0.05) { [200, {}, ["z" * 1_000_000]] }
      reactor.publish("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      @stage.work.ready(nil)
    end
    answer = reactor.answer

    assert_equal :abort, answer.ending
    assert_empty events
    assert_empty @stage.worker.called(:leave)
  end
end
