# frozen_string_literal: true

require "test_helper"
require "pando/cluster/role"

# What a process tells of the lines that its log has lost.
class ClusterLineLossesTest < Minitest::Test
  Writer = Pando::LineWriter

  def setup
    @before = [Writer.lost, Writer.due]
    Writer.lost += 5 # of the process that it was forked from
    Writer.due += 5
    @losses = Pando::Cluster::LineLosses.new
  end

  def teardown = (Writer.lost, Writer.due = @before)

  def news = [].tap { |all| @losses.news { |*one| all << one } }

  def test_what_was_lost_before_is_none_of_ours
    assert_empty news
  end

  def test_each_line_is_told_once
    lose(2)
    assert_equal [[:lines_lost, 2], [:lines_due, 2]], news
    assert_empty news
    lose(3)
    assert_equal [[:lines_lost, 3], [:lines_due, 5]], news
  end

  def test_what_the_log_has_said_is_due_no_more
    lose(2)
    news
    Writer.due -= 2
    assert_equal [[:lines_due, 0]], news
  end

  private

  def lose(lines)
    Writer.lost += lines
    Writer.due += lines
  end
end
