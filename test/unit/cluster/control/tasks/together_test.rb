# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"

# One order for several pools.
class TogetherTaskTest < Minitest::Test
  Part = Struct.new(:achieved, :failure, :checks) do
    def check = self.checks = checks.to_i + 1
    def start = nil
    def over? = !(achieved || failure).nil?
  end

  def together(*parts) = Pando::Cluster::Control::Tasks::Together.new(nil, parts)

  def test_it_is_done_when_all_are
    parts = [Part.new("web: done"), Part.new]
    task = together(*parts)

    refute_predicate task, :over?
    task.check
    assert_equal [nil, 1], parts.map(&:checks), "the one that goes on"
    parts.last.achieved = "jobs: done"

    assert_predicate task, :over?
    assert_equal ["web: done; jobs: done", nil], [task.achieved, task.failure]
  end

  def test_if_some_are_refused_the_answer_tells_of_the_others_as_well
    task = together(Part.new("web: done"), Part.new(nil, "jobs: refused"), Part.new("live: done"))

    assert_equal "jobs: refused; web: done; live: done", task.failure
  end

  def test_if_all_are_refused
    task = together(Part.new(nil, "web: refused"), Part.new(nil, "jobs: refused"))

    assert_equal "web: refused; jobs: refused", task.failure
  end
end
