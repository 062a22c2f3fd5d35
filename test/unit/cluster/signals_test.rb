# frozen_string_literal: true

require "test_helper"
require "pando/cluster/signals"
require "pando/cluster/upgrade/signal_buffer"
require "support/in_child"

# Signals as the monitor reads them, and as they are passed on when it executes itself.
class SignalsTest < Minitest::Test
  include Support::InChild

  def test_what_has_come_waits_to_be_obeyed
    said = in_child do
      signals = Pando::Cluster::Signals.new
      signals.trap_all
      told = [signals.waiting?]
      Process.kill("HUP", Process.pid)
      told.push(signals.waiting?, signals.take)
      signals.remember(%w[TSTP TERM]) # without nodes the former is none of its signals
      [*told, signals.take]
    end

    assert_equal([false, true, %w[HUP], %w[TERM]], said)
  end

  def test_from_one_image_to_the_next_they_are_remembered
    interim = Pando::Cluster::Upgrade::SignalBuffer
    said = in_child do
      passed = interim.pass_on(%w[HUP CHLD])
      Process.kill("TERM", Process.pid) # ignored: it would have ended the process
      interim.begin(passed)
      %w[USR2 USR2 TSTP].each { |name| Process.kill(name, Process.pid) }
      [passed.empty?, interim.take, interim.take]
    end

    assert_equal([true, %w[HUP USR2 TSTP], []], said)
  end

  def test_where_there_are_nodes_to_be_quieted_a_server_is_not_suspended
    said = in_child do
      signals = Pando::Cluster::Signals.new(quiet: true)
      signals.trap_all
      Process.kill("TSTP", Process.pid)
      signals.take
    end

    assert_equal(%w[TSTP], said)
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
end
