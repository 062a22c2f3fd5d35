# frozen_string_literal: true

require "test_helper"
require_relative "support/fakes"

class ClusterRosterTest < Minitest::Test
  def setup
    @roster = ClusterSupport.roster(3)
  end

  def admit(role = :worker, slot = 0, generation = 0, source: nil)
    @roster.admit(role, slot, generation, ClusterSupport::FakeLink.new, source)
  end

  def test_each_has_a_seat_of_its_own
    assert_equal [0, 1, 2], Array.new(3) { admit.seat }
    assert_raises(Pando::Error) { admit }
    assert_equal 3, @roster.size
  end

  def test_a_seat_is_free_again_when_its_process_is_buried
    children = Array.new(3) { admit }
    children[1].row.start_job("GET", "/old", nil, nil)
    @roster.dismiss(children[1])

    assert_predicate children[1], :gone?
    assert_predicate children[1].link, :closed?
    assert_equal %w[GET /old], children[1].row.job_name # until somebody sits there
    successor = admit
    assert_equal 1, successor.seat
    assert_nil successor.row.job_name
  end

  # Its late report on the first order would be taken for one on the next.
  def test_a_source_gets_the_seat_of_an_order_that_was_given_up_only_if_no_other_is_free
    mold = admit(:mold)
    @roster.dismiss(admit(source: mold))
    others = admit

    assert_equal 1, others.seat
    @roster.dismiss(others)
    assert_equal [2, 1], Array.new(2) { admit(source: mold).seat }
  end

  def test_roles_and_slots
    mold = admit(:mold)
    worker = admit(:worker, 5)
    service = admit(:service, 5)
    worker.adopt(ClusterSupport::FakePidfd.new(77))

    assert_equal [[mold], [worker], [service]], [@roster.molds, @roster.workers, @roster.services]
    assert_equal [worker], @roster.in_slot(5)
    assert_same worker, @roster.by_pid(77)
    assert_nil @roster.by_pid(78)
    assert_empty @roster.ready_workers
    worker.become_ready
    assert_equal [worker], @roster.ready_workers
  end
end
