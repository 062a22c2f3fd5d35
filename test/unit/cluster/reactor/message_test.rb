# frozen_string_literal: true

require "test_helper"
require "pando/native"
require "pando/cluster/monitor"

# The reactor's records: C's on one side, Ruby's on the other.
class ReactorMessageTest < Minitest::Test
  Message = Pando::Cluster::Reactor::Message
  C = Pando::HTTP::Reactor

  def test_the_numbers_are_those_of_the_reactor
    names = { lane_open: :LANE_OPEN, lane_dead: :LANE_DEAD, lane_close: :LANE_CLOSE, drain: :DRAIN,
              listener_open: :LISTENER_OPEN, listener_close: :LISTENER_CLOSE, welcome: :WELCOME,
              unwelcome: :UNWELCOME, reopen_log: :REOPEN_LOG, ready: :READY, drained: :DRAINED_ALL,
              lane_corrupt: :LANE_CORRUPT }

    assert_equal names.transform_values { |name| C.const_get(name) }, Message::KINDS
    assert_equal({ died: C::DIED, timeout: C::TIMEOUT, suspect: C::SUSPECT, beside: C::BESIDE }, Message::CAUSES)
  end

  def test_there_and_back
    message = Message.decode(Message.new(:lane_corrupt, lane: 7).encode)

    assert_equal [:lane_corrupt, 7], [message.kind, message.lane]
  end

  def test_whatever_has_not_the_format_is_nil
    good = Message.new(:ready).encode

    assert Message.decode(good)
    wrong = [[99, 0, 0, 0, 0, 0], [16, 0, 1, 0, 0, 0], [16, 0, 0, 0, 0, 1]].map { |fields| fields.pack("L6") }
    [nil, "", good[0..-2], "#{good}x", *wrong].each { |bytes| assert_nil Message.decode(bytes), bytes.inspect }
  end

  def test_its_link_reads_no_message_of_other_children
    ours, theirs = Pando::Cluster::Link.pair(Message)
    theirs.send(Message.new(:ready))
    assert_equal :ready, ours.receive.message.kind

    theirs.send(Pando::Cluster::Message.new(:ready))
    assert_raises(Pando::Cluster::Link::Malformed) { ours.receive }
  ensure
    [ours, theirs].compact.each(&:close)
  end
end
