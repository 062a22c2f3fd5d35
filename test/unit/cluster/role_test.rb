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

class ClusterStacksTest < Minitest::Test
  Stacks = Pando::Cluster::Stacks

  def test_the_main_thread_comes_first_and_the_others_by_name
    thread = Thread.new { Thread.stop }
    thread.name = "waiting"
    Thread.pass until thread.stop?
    *parts, last = Stacks.reports

    assert_empty(last)
    text = parts.join
    assert_match(/\Amain thread:\n(    .*\n)+/, text)
    assert_match(/^thread "waiting" \(sleep\):\n    .*stop/, text)
    assert(parts.all? { |part| part.bytesize <= Pando::Cluster::Message::TEXT_BYTES })
    refute_includes(text.lines[1], "cluster/role.rb") if Thread.current == Thread.main
  ensure
    thread&.kill
  end

  def test_a_deep_stack_has_an_end
    text = deep(3000) { Stacks.reports.join }

    assert_includes(Stacks::LIMIT..(Stacks::LIMIT + 1000), text.bytesize)
  end

  def deep(left, &block) = left.zero? ? yield : deep(left - 1, &block)
end
