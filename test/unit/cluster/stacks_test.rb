# frozen_string_literal: true

require "test_helper"
require "pando/cluster/stacks"

# The stacks of a process's threads, as the monitor gets them.
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
    refute_includes(text.lines[1], "cluster/stacks.rb") if Thread.current == Thread.main
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
