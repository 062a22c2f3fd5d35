# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "pando/cluster/monitor"
require_relative "support/bare_monitor"
require_relative "support/clock"
require_relative "support/fakes"

class ClusterTurnWatchTest < Minitest::Test
  include ClusterSupport::Clock
  include ClusterSupport::Listening

  def setup
    super
    @used = 0.0
    @watch = Pando::Cluster::TurnWatch.new(processor: -> { @used })
    @watch.turned(0.25)
  end

  def stalled = events("monitor.stalled").map { |event| [event[:seconds].round, event[:processor]] }

  def test_a_turn_that_waits_as_long_as_it_was_to
    elapse(20)

    assert_in_delta 0.0, @watch.turned(20)
    assert_empty stalled
  end

  def test_a_server_that_stood_still
    elapse(40)

    assert_in_delta 39.75, @watch.turned(0.25), 0.1
    assert_equal [[40, 0.0]], stalled
  end

  def test_a_turn_that_was_busy_is_told_and_moves_nothing
    elapse(3)
    @used += 2.5

    assert_in_delta 0.0, @watch.turned(0.25)
    assert_equal [[3, 2.5]], stalled
  end

  def test_the_next_turn_is_another
    elapse(40)
    @watch.turned(0.25)
    elapse(0.2)

    assert_in_delta 0.0, @watch.turned(0.25)
    assert_equal 1, stalled.size
  end
end

# The messages that one turn of the monitor's loop hears, and those left for the next one if the kernel refuses memory.
class ClusterMonitorHearingTest < Minitest::Test
  include ClusterSupport::Listening

  # Fails so many times before it reads.
  Inbox = Struct.new(:failures, :read_children) do
    def read(child)
      raise Errno::ENOMEM, "recvmsg" if (self.failures -= 1) >= 0

      read_children << child
    end
  end
  Pools = Class.new do
    def of(_child) = nil
    def about(_pool) = yield
  end
  PARTS = %i[orders admin upgrade examiner reload reaper].freeze

  def setup
    super
    @signals = Pando::Cluster::Signals.new
    @parts = PARTS.to_h { |name| [name, ClusterSupport::Recorder.new] }
    @inbox = Inbox.new(0, [])
    @monitor = Pando::Cluster::Monitor.allocate
    parts = { **@parts, signals: @signals, inbox: @inbox, pools: Pools.new }
    parts.each { |name, part| @monitor.instance_variable_set(:"@#{name}", part) }
  end

  def teardown
    [@signals.instance_variable_get(:@reader), @signals.instance_variable_get(:@writer)].each(&:close)
    super
  end

  def hear = @monitor.send(:hear, [%i[link child]])
  def obeyed = @parts[:orders].calls.filter_map { |name, signal| signal if name == :obey }
  def looks_for_orphans = @parts[:reaper].calls.count([:reap_orphans])

  def test_a_dead_child_is_counted_and_forgotten
    roster = ClusterSupport.roster(1)
    child = roster.admit(:worker, 0, 0, ClusterSupport::FakeLink.new, nil)
    child.adopt(ClusterSupport::FakePidfd.new(77))
    tally, gauge = Array.new(2) { ClusterSupport::Recorder.new }
    parts = { roster: roster, poller: poller = ClusterSupport::FakePoller.new, tally: tally, gauge: gauge }
    parts.each { |name, part| @monitor.instance_variable_set(:"@#{name}", part) }
    [child.link, child.pidfd].each { |io| poller.add(io, child) }
    @monitor.dismiss(child)

    assert_equal([[[:retire, child]], [[:forget, 77]]], [tally.calls, gauge.calls])
    assert_empty(poller.watched + roster.to_a)
  end

  def test_signals_are_obeyed_once
    @signals.remember(%w[TERM CHLD USR2])
    2.times { hear }

    assert_equal([%w[TERM USR2], 1], [obeyed, looks_for_orphans])
  end

  def test_a_signal_that_came_in_a_turn_that_failed_is_obeyed_in_the_next_one
    @signals.remember(%w[TERM CHLD])
    @inbox.failures = 1
    assert_raises(Errno::ENOMEM) { hear }
    assert_empty(obeyed)
    hear

    assert_equal([%w[TERM], 1, [:child]], [obeyed, looks_for_orphans, @inbox.read_children])
  end

  def test_a_signal_that_was_obeyed_before_the_turn_failed_is_not_obeyed_again
    @signals.remember(%w[TERM CHLD])
    refusals = [Errno::EMFILE]
    @parts[:admin].define_singleton_method(:hear) { (refusal = refusals.pop) && raise(refusal) }
    assert_raises(Errno::EMFILE) { hear }
    hear

    assert_equal([%w[TERM], 1], [obeyed, looks_for_orphans])
  end
end

# What a monitor finds out about its machine.
class ClusterMonitorProbesTest < Minitest::Test
  include ClusterSupport::BareMonitor
  include ClusterSupport::Listening

  def test_it_says_once_that_memory_cannot_be_measured
    monitor = Pando::Sys::Memory.stub(:usage, nil) { set_up_monitor }

    assert_equal([monitor.gauge.obstacle], events("memory.unavailable").map { |event| event[:reason] })
    refute_nil monitor.gauge.obstacle
  end

  # Without limits for memory, too.
  def test_each_turn_looks_whether_the_kernel_has_killed_for_memory
    looks = 0
    monitor = set_up_monitor
    monitor.stub(:reconcile, nil) do
      monitor.oom.stub(:look, -> { looks += 1 }) { monitor.send(:take_turn) }
    end

    assert_equal 1, looks
  end

  def test_it_says_nothing_where_memory_can_be_measured
    assert_nil set_up_monitor.gauge.obstacle
    assert_empty events("memory.unavailable")
  end
end
