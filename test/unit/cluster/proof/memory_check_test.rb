# frozen_string_literal: true

require "test_helper"
require "pando/cluster/proof/curve"
require "pando/cluster/proof/memory_check"

class ProofMemoryCheckTest < Minitest::Test
  MIB = 1024 * 1024
  Worker = Struct.new(:pid, :requests, :row)
  Row = Struct.new(:faults, :prefaulted, :requests, :failures, :first_jobs)

  def row(mebibytes, given = 0)
    Row.new([mebibytes * 256, *[0] * 8], [given * MIB, 0.0], 1, 0, ["", ""])
  end

  def complaint(has, given: 0, before: 4)
    source = Object.new
    source.define_singleton_method(:usage) { |_pid| Pando::Sys::Memory::Usage.new(0, has * MIB, 0) }
    curve = Pando::Cluster::Proof::Curve.new.add(row(before))
    Pando::Cluster::Proof::MemoryCheck.new(source).complaint(Worker.new(1, 1, row(has, given)), curve)
  end

  def test_half_as_much_again_and_eight_mebibytes_are_allowed
    assert_nil complaint(14)
    assert_match(/private memory is 15.0 MiB after 1 requests, that of those before was at most 4.0 MiB/, complaint(15))
  end

  def test_what_it_was_given_at_its_start_it_may_have_besides
    assert_nil complaint(30, given: 16)
    refute_nil complaint(31, given: 16)
  end
end
