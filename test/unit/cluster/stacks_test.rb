# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"

class ClusterStacksTest < Minitest::Test
  Stacks = Pando::Cluster::Stacks

  def test_the_main_thread_comes_first_and_the_others_by_name
    thread = Thread.new { Thread.stop }
    thread.name = "waiting"
    Thread.pass until thread.stop?
    *parts, last = Stacks.reports("no handler")

    assert_empty(last)
    text = parts.join
    assert_match(/\Amain thread:\n(    .*\n)+/, text)
    assert_match(/^thread "waiting" \(sleep\):\n    .*stop/, text)
    assert(parts.all? { |part| part.bytesize <= Pando::Cluster::Message::TEXT_BYTES })
    refute_includes(text.lines[1], "stacks.rb") if Thread.current == Thread.main
  ensure
    thread&.kill
  end

  def test_a_deep_stack_has_an_end
    text = deep(3000) { Stacks.reports("no handler").join }

    assert_includes(Stacks::LIMIT..(Stacks::LIMIT + 1000), text.bytesize)
  end

  def deep(left, &block) = left.zero? ? yield : deep(left - 1, &block)
end
