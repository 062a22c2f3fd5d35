# frozen_string_literal: true

require "test_helper"
require "socket"
require "pando/sys"
require "support/no_descriptors"
require_relative "support/in_child"

class SysRecordTest < Minitest::Test
  include SysSupport::InChild
  include Support::NoDescriptors

  Sys = Pando::Sys

  def setup
    @ours, @theirs = UNIXSocket.pair(:SEQPACKET)
    @ours.setsockopt(Socket::SOL_SOCKET, Socket::SO_PASSCRED, 1)
  end

  def teardown
    [@ours, @theirs].each(&:close)
  end

  # Sent by a hostile peer: past all our checks.
  def send_anything(bytes, ios = [])
    data = ios.empty? ? [] : [Socket::AncillaryData.unix_rights(*ios)]
    @theirs.sendmsg(bytes, 0, nil, *data)
  end

  def test_one_record_at_a_time
    Sys.send_record(@theirs, "one", [])
    Sys.send_record(@theirs, "two\0\xFF", [])

    assert_equal ["one", Process.pid, []], Sys.receive_record(@ours)
    bytes, = Sys.receive_record(@ours)
    assert_equal "two\0\xFF".b, bytes
    assert_equal Encoding::BINARY, bytes.encoding
    assert_same false, Sys.receive_record(@ours)
  end

  def test_descriptors_travel_along
    pipes = Array.new(4) { IO.pipe }
    Sys.send_record(@theirs, "take them", pipes.map(&:last))
    pipes.each { |pipe| pipe.last.close }
    _, _, fds = Sys.receive_record(@ours)
    ios = fds.map { |fd| IO.for_fd(fd, "w") }
    ios.each_with_index { |io, index| io.syswrite("pipe #{index}") }

    assert_equal(["pipe 0", "pipe 1", "pipe 2", "pipe 3"], pipes.map { |pipe| pipe.first.readpartial(10) })
    assert ios.all?(&:close_on_exec?)
  ensure
    [*ios, *pipes.flatten].each(&:close)
  end

  # This process may have no more descriptors: what was said is heard all the same.
  def test_descriptors_that_there_is_no_room_for
    Sys.send_record(@theirs, "take it", [@theirs])
    record = without_free_descriptors { Sys.receive_record(@ours) }

    assert_equal [nil, Process.pid, [], "take it"], record
  end

  def test_the_sender_is_the_one_that_the_kernel_names
    pid = fork do
      Sys.send_record(@theirs, "I am pid 1", [])
      leave
    end
    Process.wait(pid)

    assert_equal ["I am pid 1", pid, []], Sys.receive_record(@ours)
  end

  def test_an_end_that_did_not_ask_for_it_is_told_no_sender
    Sys.send_record(@ours, "an order", [])

    assert_equal ["an order", 0, []], Sys.receive_record(@theirs)
  end

  def test_the_largest_record_and_one_byte_more
    Sys.send_record(@theirs, "x" * Sys::RECORD_CAPACITY, [])
    Sys.send_record(@theirs, "x" * (Sys::RECORD_CAPACITY + 1), [])
    Sys.send_record(@theirs, "next", [])

    assert_equal "x" * Sys::RECORD_CAPACITY, Sys.receive_record(@ours).first
    assert_nil Sys.receive_record(@ours).first
    assert_equal "next", Sys.receive_record(@ours).first
  end

  def test_too_many_descriptors_are_closed_and_told
    kept, open_before, open_after = in_child do
      readers = Array.new(12) { IO.pipe.first }
      before = open_descriptors
      kept = [5, 12].map do |count|
        send_anything("x", readers.first(count))
        bytes, _, fds = Sys.receive_record(@ours)
        fds.each { |fd| Sys.close_fd(fd) }
        [bytes, fds.size <= 4]
      end
      [kept, before, open_descriptors]
    end

    assert_equal [[nil, true], [nil, true]], kept
    assert_equal open_before, open_after
  end

  def test_too_many_descriptors_where_no_sender_is_asked_for
    kept, open_before, open_after = in_child do
      readers = Array.new(12) { IO.pipe.first }
      @ours, @theirs = UNIXSocket.pair(:SEQPACKET)
      before = open_descriptors
      send_anything("x", readers)
      bytes, _, fds = Sys.receive_record(@ours)
      fds.each { |fd| Sys.close_fd(fd) }
      [[bytes, fds.size], before, open_descriptors]
    end

    assert_equal [nil, 4], kept
    assert_equal open_before, open_after
  end

  def test_we_send_no_more_than_we_take
    assert_raises(ArgumentError) { Sys.send_record(@theirs, "x", [0] * 5) }
    assert_raises(TypeError) { Sys.send_record(@theirs, "x", nil) }
    assert_raises(TypeError) { Sys.send_record(@theirs, nil, []) }
    assert_raises(Errno::EBADF) { Sys.send_record(@theirs, "x", [9999]) }
    assert_same false, Sys.receive_record(@ours)
  end

  def test_an_empty_record_looks_like_the_end
    assert_raises(ArgumentError) { Sys.send_record(@theirs, "", []) }
    send_anything("")

    assert_nil Sys.receive_record(@ours)
  end

  def test_an_empty_record_with_a_descriptor_is_a_record
    send_anything("", [@theirs])
    bytes, sender, fds = Sys.receive_record(@ours)
    Sys.close_fd(fds.first)

    assert_equal ["", Process.pid, 1], [bytes, sender, fds.size]
  end

  def test_the_end_comes_after_the_last_record
    Sys.send_record(@theirs, "last words", [])
    @theirs.close

    assert_equal "last words", Sys.receive_record(@ours).first
    assert_nil Sys.receive_record(@ours)
    assert_nil Sys.receive_record(@ours)
  end

  def test_last_messages_are_read_even_of_a_peer_that_did_not_read
    Sys.send_record(@theirs, "last words", [])
    Sys.send_record(@ours, "never read", [])
    @theirs.close

    assert_equal "last words", Sys.receive_record(@ours).first
    assert_nil Sys.receive_record(@ours)
  end

  def test_sending_never_blocks_and_never_kills
    sent = 0
    assert_raises(Errno::EAGAIN) { loop { Sys.send_record(@theirs, "x" * 1000, []) && (sent += 1) } }
    @ours.close
    assert_raises(Errno::ECONNRESET, Errno::EPIPE) { Sys.send_record(@theirs, "x", []) }
    assert_raises(Errno::EPIPE) { Sys.send_record(@theirs, "x", []) }
    assert_operator sent, :>, 10
  end

  def test_only_a_socket_is_a_link
    IO.pipe do |reader, writer|
      assert_raises(Errno::ENOTSOCK) { Sys.receive_record(reader) }
      assert_raises(Errno::ENOTSOCK) { Sys.send_record(writer, "x", []) }
    end
  end

  def test_closing_a_number_never_raises
    reader, writer = IO.pipe
    writer.autoclose = false
    Sys.close_fd(writer.fileno)

    assert_nil reader.read(1)
    assert_nil Sys.close_fd(9999)
    assert_nil Sys.close_fd(-1)
  ensure
    reader.close
  end
end
