# frozen_string_literal: true

require "test_helper"
require "pando/cluster/signals"
require "support/in_child"

# Signals as the monitor reads them, and as it ignores them before it executes itself.
class SignalsTest < Minitest::Test
  include Support::InChild

  def test_what_has_come_is_not_lost_and_what_comes_is_ignored
    said = in_child do
      signals = Pando::Cluster::Signals.new
      signals.trap_all
      Process.kill("HUP", Process.pid)
      told = [signals.ignore, signals.take]
      told << signals.ignore
      Process.kill("TERM", Process.pid)
      signals.trap_all
      Process.kill("USR2", Process.pid)
      [*told, signals.take]
    end

    assert_equal([false, %w[HUP], true, %w[USR2]], said)
  end

  def test_a_stop_that_is_said_twice_at_once_is_one
    said = in_child do
      now = Pando::Sys.now
      Pando::Sys.singleton_class.prepend(Module.new { define_method(:now) { now } })
      signals = Pando::Cluster::Signals.new
      signals.trap_all
      [0, 0.09, 0.02, 5].map do |later|
        now += later
        %w[TERM INT TTIN].each { |name| Process.kill(name, Process.pid) }
        signals.take
      end
    end

    assert_equal([%w[TERM INT TTIN], %w[TTIN], %w[TERM INT TTIN], %w[TERM INT TTIN]], said)
  end

  # By default the death of a child is nothing to a process; if it were ignored its status would be lost.
  def test_the_death_of_a_child_is_not_ignored
    status = in_child do
      signals = Pando::Cluster::Signals.new
      signals.trap_all
      signals.ignore
      Process.wait2(Process.spawn("exit 3")).last.exitstatus
    end

    assert_equal(3, status)
  end
end
