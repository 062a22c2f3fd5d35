# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require "pando/native"
require_relative "support/clock"

class ClusterMessageTest < Minitest::Test
  include ClusterSupport::Clock

  Message = Pando::Cluster::Message

  ROUNDS = 100_000

  def fields(message)
    [message.kind, message.role, message.seat, message.slot, message.generation, message.text]
  end

  def valid = Message.new(:ready, role: :worker, seat: 1, slot: 2, generation: 3, text: "text").encode

  def test_what_is_said_is_heard
    Message::KINDS.each_key do |kind|
      Message::ROLES.each do |role|
        said = Message.new(kind, role: role, seat: 4095, slot: 1023, generation: (2**32) - 1, text: "naïve ✓")

        assert_equal fields(said), fields(Message.decode(said.encode))
      end
    end
  end

  def test_an_order_to_hurry_knows_its_age
    order = Message.hurry(:drain, 24.9996)
    elapse(7)
    heard = Message.decode(order.encode)

    assert_equal [:drain, "25.0"], [heard.kind, heard.text]
    assert_in_delta 7, heard.age, 0.2
    assert_in_delta 0, Message.new(:leave).age
  end

  def test_the_clock_of_an_order_may_go_round
    round = (2**32) / 10.0
    elapse(round - 3 - (now % round))
    order = Message.hurry(:leave, 10.0)
    elapse(8)

    assert_in_delta 8, order.age, 0.2
  end

  def test_defaults
    assert_equal [:leave, :worker, 0, 0, 0, ""], fields(Message.decode(Message.new(:leave).encode))
  end

  def test_a_record_is_never_empty_and_never_larger_than_a_link_takes
    assert_equal Message::HEAD_BYTES, Message.new(:leave).encode.bytesize
    long = Message.new(:detail, text: "é" * 5000)

    assert_equal Message::HEAD_BYTES + Message::TEXT_BYTES, long.encode.bytesize
    assert_operator long.encode.bytesize, :<=, Pando::Sys::RECORD_CAPACITY
    assert_equal Encoding::BINARY, long.encode.encoding
  end

  def test_a_text_cut_within_a_letter_or_not_utf8_stays_text
    text = Message.decode(Message.new(:failed, text: "x#{"é" * 5000}").encode).text
    broken = Message.decode(Message.new(:failed, text: "a\xFFb".b).encode).text

    assert_predicate text, :valid_encoding?
    assert_equal Encoding::UTF_8, text.encoding
    assert_equal "a?b", broken
  end

  def test_the_callers_text_is_left_alone
    text = "é"
    Message.new(:failed, text: text.freeze).encode

    assert_equal Encoding::UTF_8, text.encoding
  end

  def test_what_does_not_fit_the_format_is_nothing
    assert_nil Message.decode(nil)
    assert_nil Message.decode("")
    assert_nil Message.decode(valid[0, Message::HEAD_BYTES - 1])
    assert_nil Message.decode(valid + ("x" * Message::TEXT_BYTES))
    assert_nil Message.decode(valid.tap { |bytes| bytes.setbyte(0, Message::KINDS.values.max + 1) }), "unknown kind"
    assert_nil Message.decode(valid.tap { |bytes| bytes.setbyte(1, 2) }), "another version"
    assert_nil Message.decode(valid.tap { |bytes| bytes.setbyte(2, 3) }), "unknown role"
    assert_nil Message.decode(valid.tap { |bytes| bytes.setbyte(3, 255) }), "unknown role"
  end

  def test_only_what_is_known_can_be_said
    assert_raises(KeyError) { Message.new(:nonsense).encode }
    assert_raises(TypeError) { Message.new(:ready, role: :nobody).encode }
  end

  # Random and mutated records: nothing is raised, no Symbol is made, and what is understood is what was said.
  def test_fuzz
    random = Random.new(Minitest.seed || 1)
    2.times { |round| fuzz(random, round.zero? ? 1000 : ROUNDS) }
  end

  private

  def fuzz(random, rounds)
    symbols = Symbol.all_symbols.size
    understood = 0
    rounds.times do |round|
      message = Message.decode(round.even? ? noise(random) : mutant(random)) or next
      understood += 1
      assert_equal fields(message), fields(Message.decode(message.encode))
    end

    assert_operator understood, :>, rounds / 100
    assert_operator Symbol.all_symbols.size, :<=, symbols if rounds == ROUNDS
  end

  def noise(random) = random.bytes(random.rand(1030))

  def mutant(random)
    text = random.bytes(random.rand(40))
    bytes = Message.new(Message::KINDS.keys.sample(random: random), seat: random.rand(2**32), text: text).encode
    random.rand(4).times { bytes.setbyte(random.rand(bytes.bytesize), random.rand(256)) }
    random.rand(8).zero? ? bytes[0, random.rand(bytes.bytesize)] : bytes
  end
end

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
    causes = { died: :DIED, timeout: :TIMEOUT, suspect: :SUSPECT, beside: :BESIDE, left_late: :LEFT_LATE }
    assert_equal causes.transform_values { |name| C.const_get(name) }, Message::CAUSES
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
