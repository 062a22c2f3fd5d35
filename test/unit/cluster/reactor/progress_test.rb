# frozen_string_literal: true

require "test_helper"
require "pando/cluster/reactor/supervisor"
require_relative "../support/fakes"

# Which workers let requests wait that they could take.
class ReactorProgressTest < Minitest::Test
  def setup
    @roster = ClusterSupport.roster
    @progress = Pando::Cluster::Reactor::Progress.new(@roster)
  end

  def worker
    child = @roster.admit(:worker, @roster.size, 0, ClusterSupport::FakeLink.new, nil)
    child.adopt(ClusterSupport::FakePidfd.new(1000 + @roster.size))
    child.become_ready
    child.row.beat
    child
  end

  def look(waiting: true, beating: @roster.workers)
    @progress.look(waiting).tap { beating.each { |child| child.row.beat } }
  end

  def test_two_signs_of_life_beside_a_waiting_request_are_proof
    idle = worker

    assert_equal([[], [], [idle]], Array.new(3) { look })
    @progress.forget
    refute_predicate @progress, :doubtful?
    assert_empty look
  end

  def test_whoever_shows_no_life_may_not_have_been_asked
    worker

    assert_empty(Array.new(5) { look(beating: []) }.flatten)
  end

  def test_whoever_was_busy_meanwhile_is_not_to_blame
    only = worker
    5.times do
      assert_empty look
      only.row.start_job("GET", "/", nil, nil)
      assert_empty look
      only.row.finish_job
    end
  end

  def test_a_moment_without_a_request_begins_anew
    worker
    2.times { look }
    assert_predicate @progress, :doubtful?
    look(waiting: false)

    refute_predicate @progress, :doubtful?
    assert_empty(Array.new(2) { look }.flatten)
  end
end
