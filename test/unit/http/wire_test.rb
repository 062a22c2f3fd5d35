# frozen_string_literal: true

require "test_helper"
require "pando/native"
require "socket"
require "tempfile"

class HTTPWireTest < Minitest::Test
  Wire = Pando::HTTP::Wire

  def setup
    @near, @far = UNIXSocket.pair
  end

  def teardown
    [@near, @far].each(&:close)
  end

  def test_receive_puts_bytes_behind_those_already_there
    buffer = +"abc".b
    assert_nil Wire.receive(@near.fileno, buffer, 3, 10)
    @far.write("defgh")

    assert_equal 3, Wire.receive(@near.fileno, buffer, 3, 3)
    assert_equal "abcdef", buffer
    assert_equal 2, Wire.receive(@near.fileno, buffer, 1, 10)
    assert_equal "agh", buffer
  end

  def test_receive_leaves_a_string_that_shares_the_bytes_alone
    original = "x" * 100
    buffer = original.dup
    @far.write("yy")
    Wire.receive(@near.fileno, buffer, 0, 10)

    assert_equal ["yy", "x" * 100], [buffer, original]
  end

  def test_receive_says_that_the_peer_has_ended
    @far.shutdown(:WR)

    assert_equal 0, Wire.receive(@near.fileno, +"", 0, 10)
  end

  def test_receive_checks_its_bounds
    [[-1, 1], [4, 1], [0, 0], [0, -1], [0, 1 << 40]].each do |offset, max|
      assert_raises(ArgumentError) { Wire.receive(@near.fileno, +"abc", offset, max) }
    end
    assert_raises(FrozenError) { Wire.receive(@near.fileno, "abc", 0, 1) }
  end

  def test_transmit_sends_parts_as_one_from_any_offset
    parts = ["ab", "", "cde", "f"]
    (0..6).each do |offset|
      assert_equal 6 - offset, Wire.transmit(@near.fileno, parts, offset)
      assert_equal "abcdef"[offset..], offset == 6 ? "" : @far.readpartial(100)
    end
  end

  def test_transmit_takes_many_parts_in_turns
    parts = Array.new(200) { |i| (i % 10).to_s }
    sent = 0
    sent += Wire.transmit(@near.fileno, parts, sent) while sent < 200

    assert_equal parts.join, @far.readpartial(1000)
  end

  def test_transmit_never_blocks_and_never_signals
    nil while Wire.transmit(@near.fileno, ["x" * 65_536], 0)
    @far.close

    assert_raises(Errno::EPIPE) { Wire.transmit(@near.fileno, ["x"], 0) }
  end

  def test_transmit_takes_strings_only
    assert_raises(TypeError) { Wire.transmit(@near.fileno, [1], 0) }
    assert_raises(TypeError) { Wire.transmit(@near.fileno, "x", 0) }
  end

  def test_sendfile_sends_a_part_and_says_where_the_file_ends
    Tempfile.create do |file|
      file.write("0123456789")
      file.flush

      assert_equal 4, Wire.sendfile(@near.fileno, file.fileno, 3, 4)
      assert_equal "3456", @far.readpartial(100)
      assert_equal 0, Wire.sendfile(@near.fileno, file.fileno, 10, 4)
    end
  end
end
