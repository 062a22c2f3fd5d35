# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"

# What a process tells of the lines that its log has lost.
class ClusterLostLinesTest < Minitest::Test
  Writer = Pando::LineWriter

  # A role without a process around it.
  class Subject < Pando::Cluster::Role
    attr_reader :told

    def initialize # rubocop:disable Lint/MissingSuper
      @told = []
      @lost_lines = Writer.lost
    end

    def report(kind, text: "") = @told << [kind, text]
    public :report_lost_lines
  end

  def setup
    @before = Writer.lost
    Writer.lost += 5 # of the process that it was forked from
    @role = Subject.new
  end

  def teardown = (Writer.lost = @before)

  def test_lines_lost_before_are_not_reported
    @role.report_lost_lines

    assert_empty @role.told
  end

  def test_each_line_is_told_once
    Writer.lost += 2
    2.times { @role.report_lost_lines }
    Writer.lost += 3
    @role.report_lost_lines

    assert_equal [[:lines_lost, "2"], [:lines_lost, "3"]], @role.told
  end
end
