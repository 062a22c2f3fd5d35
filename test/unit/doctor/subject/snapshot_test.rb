# frozen_string_literal: true

require "test_helper"
require "socket"
require "pando/doctor/subject/snapshot"
require "pando/fork_safety"

# The report of an examined process about itself.
class DoctorSnapshotTest < Minitest::Test
  def test_sockets_with_and_without_a_peer
    UNIXSocket.pair do |io, peer|
      assert_equal([false], reported(io))
      peer.write("one\ntwo\n")
      assert_equal("one\n", io.gets)
      assert_equal([false], reported(io), "Ruby has the second line in its buffer")
      io.gets
      peer.close
      assert_equal([true], reported(io))
    end
  end

  private

  def reported(io)
    snapshot = Pando::Doctor::Subject::Snapshot.new([], [], ->(_thread) { false })
    rows = snapshot.ios.select { |one| one.values_at(:number, :type) == [io.fileno, "UNIXSocket"] }
    rows.map { |one| one[:ended] }
  end
end
