# frozen_string_literal: true

require "test_helper"
require "pando/cluster/oom_score"
require "support/in_child"

# Which process the kernel kills first when memory runs out, wherever the server's own value lies.
class ClusterOOMScoreTest < Minitest::Test
  include Support::InChild

  OOMScore = Pando::Cluster::OOMScore

  def scores(value, base) = %i[mold reactor worker].map { |role| OOMScore.of(role, value, base) }

  def test_workers_lie_above_the_monitor_and_the_others_between_them
    { 0 => [25, 50, 100], 500 => [525, 550, 600], -900 => [-875, -850, -800] }.each do |base, expected|
      assert_equal(expected, scores(100, base), base)
    end
  end

  # As in a pod of Kubernetes that has no guarantee of its memory.
  def test_near_the_end_of_the_range_they_are_ordered_as_well_as_it_allows
    { 900 => [925, 950, 1000], 950 => [963, 975, 1000], 997 => [998, 999, 1000], 998 => [998, 999, 1000],
      999 => [999, 999, 1000], 1000 => [1000, 1000, 1000] }.each do |base, expected|
      assert_equal(expected, scores(100, base), base)
    end
  end

  def test_a_small_distance
    assert_equal([[0, 0, 0], [0, 0, 1], [0, 1, 2], [1, 2, 3]], (0..3).map { |value| scores(value, 0) })
  end

  def test_where_the_server_starts_with_a_value_of_its_own
    found = in_child do
      File.write("/proc/self/oom_score_adj", "500")
      parent = Process.pid
      in_child do
        OOMScore.set(:worker, 100, monitor: parent)
        File.read("/proc/self/oom_score_adj").to_i
      end
    end

    assert_equal(600, found)
  end
end
