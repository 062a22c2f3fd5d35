# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"

class CanaryMemoryCheckTest < Minitest::Test
  MIB = 1024 * 1024
  MOLD = 60
  Process = Struct.new(:pid, :generation, :requests, :row)
  Row = Struct.new(:faults, :prefaulted, :requests, :failures, :first_jobs)

  def row(faulted, given = 0)
    Row.new([0, 0, 0, 0, faulted * 256, 0, 0, 0, 0], [given * MIB, 0.0], 16, 0, ["", ""])
  end

  # A worker that has faulted in so many mebibytes in its first 16 requests, and grown by so many since its fork.
  def complaint(faulted, grown, given: 0, before: 4, requests: 16, mold: 1)
    sizes = { 1 => MOLD * MIB, 2 => ((MOLD + grown) * MIB if grown) }
    source = Object.new
    source.define_singleton_method(:anonymous) { |pid| sizes.fetch(pid) }
    roster = Struct.new(:molds).new([Process.new(3, 0), Process.new(1, mold)])
    curve = Pando::Cluster::Canary::Curve.new.add(row(before))
    worker = Process.new(2, 1, requests, row(faulted, given))
    Pando::Cluster::Canary::MemoryCheck.new(roster, source).complaint(worker, curve)
  end

  def test_what_those_before_took_and_eight_mebibytes_are_allowed
    assert_nil complaint(20, 12)
    assert_equal "it has grown by 13.0 MiB in 16 requests, those before by at most 4.0 MiB", complaint(20, 13)
  end

  # A full collection.
  def test_what_it_copies_of_its_molds_memory_is_not_more
    assert_nil complaint(MOLD, 0)
  end

  def test_who_has_no_more_page_faults_has_not_grown
    assert_nil complaint(14, 40)
    refute_nil complaint(15, 40)
  end

  def test_what_it_was_given_at_its_start_it_has_faulted_in_besides
    assert_nil complaint(30, 40, given: 16)
    refute_nil complaint(31, 40, given: 16)
  end

  def test_more_requests_may_take_more
    assert_nil complaint(20, 16, requests: 32)
    assert_match(/grown by 17.0 MiB in 32 requests, those before by at most 8.0 MiB/, complaint(20, 17, requests: 32))
  end

  def test_what_cannot_be_measured_is_not_held_against_it
    assert_nil complaint(20, nil)
    assert_nil complaint(20, 13, mold: 2)
  end
end
