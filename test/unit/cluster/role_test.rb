# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require "support/in_child"

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

  def setup = @standing = []
  def teardown = @standing.each(&:kill)

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
    text = deep(3000) { Stacks.reports([Thread.current]).join } # other tests of this process have threads, too

    assert_includes((Stacks::LIMIT - 1000)..Stacks::LIMIT, text.bytesize)
    assert_match(/^    \.\.\. \d{4} frames left out \.\.\.$/, text)
  end

  # As five requests of a Rails app.
  def test_each_thread_of_many_with_deep_stacks_is_shown_with_both_ends
    threads = Array.new(5) { |number| standing("busy #{number}", 300 + number) }
    text = Stacks.reports(threads).join
    shown = text.split(/^(?=thread)/)

    assert_equal(5, shown.size)
    shown.each do |stack|
      assert_match(/\Athread "busy \d" \(sleep\):\n    .*stop.*\n(    .*\n)+    \.\.\. \d+ frames left out/, stack)
      assert_match(/in .*standing.*\n\z/, stack)
    end
    assert_operator(text.bytesize, :<=, Stacks::LIMIT)
  end

  def test_idle_threads_come_last_and_share_a_stack
    threads = Array.new(60) { standing("idle", 0) } << standing("busy", 5)
    text = Stacks.reports(threads).join

    assert_equal(['thread "busy" (sleep):', 'thread "idle" (sleep) and 59 more with the same stack:'],
                 text.scan(/^thread .*/))
  end

  def test_all_threads_that_a_worker_may_have_for_requests_are_shown
    threads = Array.new(64) { |number| standing("busy #{number}", 100 + number) }
    text = Stacks.reports(threads).join

    64.times { |number| assert_includes(text, %(thread "busy #{number}" )) }
    assert_operator(text.bytesize, :<=, Stacks::LIMIT)
  end

  def test_stacks_that_have_no_room_are_counted
    threads = Array.new(200) { |number| standing("busy", 100 + number) }
    text = Stacks.reports(threads).join

    assert_operator(text.bytesize, :<=, Stacks::LIMIT + Stacks::NOTE)
    assert_equal("#{200 - text.scan(/^thread/).size} more stacks were left out", text.lines.last.chomp)
  end

  def standing(name, depth)
    @standing << (thread = Thread.new { deep(depth) { Thread.stop } })
    thread.name = name
    Thread.pass until thread.stop?
    thread
  end

  def deep(left, &block) = left.zero? ? yield : deep(left - 1, &block)
end

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
